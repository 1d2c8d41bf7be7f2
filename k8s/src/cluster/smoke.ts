import { randomBytes } from "node:crypto";
import { mesh as declaration } from "@devmesh/contracts/mesh";
import { eventually } from "@devmesh/testkit/eventually";
import { type HttpAnswer, httpClient } from "@devmesh/testkit/http";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import type { ClusterAccess } from "./mesh-access.ts";

/**
 * The shortest way through a mesh from outside, by REST and MQTT, with a device that it creates and deletes. `passed`
 * gets each step that went well; throws at the first that did not.
 */
export async function smoke(mesh: ClusterAccess, passed: (step: string) => void): Promise<void> {
  const master = httpClient(`${mesh.url}/api/v2`, mesh.masterKey);
  const id = `smoke-${randomBytes(6).toString("hex")}`;
  const step = async (name: string, check: () => Promise<void>) => {
    try {
      await check();
    } catch (cause) {
      throw new Error(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    }
    passed(name);
  };

  await step("the master key is accepted", async () => {
    // Where the only nats-server has just been replaced, services connect to the new one a moment after it is ready.
    const settled = await eventually(async () => {
      const answer = await master("/keys?limit=1");
      if (answer.status >= 503) throw new Error(`${answer.status}: ${answer.text}`);
      return answer;
    });
    expectStatus(settled, 200);
  });
  await step("every service is there", () =>
    holds(async () => {
      const { services } = expectStatus(await master("/mesh"), 200);
      const running = new Set(services.map(({ name }: { name: string }) => name));
      const missing = Object.keys(declaration).filter((name) => !running.has(name));
      if (missing.length > 0) throw new Error(`missing: ${missing.join(", ")}`);
    }),
  );
  let token = "";
  await step("a device is created", async () => {
    token = expectStatus(await master("/devices", { body: { id } }), 201).token;
  });
  const login = {
    url: mesh.mqttUrl,
    id,
    token,
    ...(mesh.mqttCertificate !== null && { tlsCert: mesh.mqttCertificate }),
  };
  try {
    await using device = await connectMqttDevice(login);
    passed("the device logs in by MQTT");

    await device.answerRpc(({ params }) => ({ result: params ?? null }));
    await step("a call reaches the device and returns", () =>
      holds(async () => {
        const answer = expectStatus(await master(`/devices/${id}/rpc/Echo`, { body: { sent: 21 } }), 200);
        if (answer.sent !== 21) throw new Error(`the answer is ${JSON.stringify(answer)}`);
      }),
    );
    await step("a desired state reaches the device, a reported one the shadow", async () => {
      await device.subscribe(`${id}/shadow/delta`, 1);
      const desired = { shadow: { state: { desired: { target: 21 } } } };
      expectStatus(await master(`/devices/${id}`, { body: desired }), 200);
      await device.awaitMessage(
        ({ topic, payload }) => topic === `${id}/shadow/delta` && JSON.parse(payload).state?.target === 21,
      );
      await device.publish(`${id}/shadow/update`, { state: { reported: { target: 21 } } }, 1);
      await holds(async () => {
        const { state } = expectStatus(await master(`/devices/${id}`), 200).shadow;
        if (state.reported.target !== 21 || state.delta !== undefined)
          throw new Error(`the shadow is ${JSON.stringify(state)}`);
      });
    });
    await step("a record is stored and read", async () => {
      await device.publish(`db/${id}/temperature`, "21.5", 1);
      await holds(async () => {
        const records = expectStatus(await master(`/data?filter=db/${id}/`), 200);
        if (records[0]?.message !== "21.5") throw new Error("the record is not stored");
      });
    });
    await step("a device key sees its device and nothing else", async () => {
      const { key } = expectStatus(await master("/keys", { body: { device_id: id } }), 201);
      const asDevice = master.as(key);
      const own = expectStatus(await asDevice("/device"), 200);
      if (own.id !== id) throw new Error(`it sees ${own.id}`);
      expectStatus(await asDevice("/devices"), 403);
      expectStatus(await asDevice("/data?device_id=another"), 403);
    });
  } finally {
    await step("the device is deleted", async () => {
      expectStatus(await master(`/devices/${id}`, { method: "DELETE" }), 204);
      expectStatus(await master(`/devices/${id}`), 404);
    });
  }
  await step("its login is refused", async () => {
    const refused = await connectMqttDevice(login).then(
      async (device) => {
        await device.leave();
        return false;
      },
      () => true,
    );
    if (!refused) throw new Error("a deleted device could log in");
  });
}

/** Repeats a check until it does not throw. */
async function holds(check: () => Promise<void>): Promise<void> {
  await eventually(() => check().then(() => true), { everyMs: 100 });
}

function expectStatus({ status, text, json }: HttpAnswer, expected: number): HttpAnswer["json"] {
  if (status !== expected) throw new Error(`${status} instead of ${expected}: ${text}`);
  return json;
}
