import type { TestCluster } from "@devmesh/testkit/cluster";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import type { TestNatsServer } from "@devmesh/testkit/nats-server";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Sender, startSender } from "../src/acknowledged-load.ts";
import type { RestClient } from "../src/rest-client.ts";
import { asMaster } from "../src/tenant.ts";

/**
 * A mesh on three clustered nats-servers that keep each stream three times: what holds across them, and when one is
 * killed.
 */
let mesh: TestMesh;
let cluster: TestCluster;
let master: RestClient;
let listeners: string[];
beforeAll(async () => {
  mesh = await startMesh({ broker: "cluster" });
  if (!mesh.cluster) throw new Error("the mesh runs on no cluster");
  cluster = mesh.cluster;
  master = asMaster(mesh);
  listeners = cluster.servers.map(({ mqttUrl }) => mqttUrl);
  // Logins are refused until the broker stores what devices publish, which elections on a busy machine may delay.
  const login = await enrol("first");
  for (const at of listeners.keys()) {
    await eventually(async () => {
      await using device = await connectTo(at, login);
      return device.client.connected;
    });
  }
});
afterAll(async () => await mesh?.stop(), 60_000);

interface Login {
  readonly id: string;
  readonly token: string;
}

const enrol = async (id: string): Promise<Login> => {
  const { status, json } = await master.post("devices", { id });
  expect(status).toBe(201);
  return { id, token: json.token };
};

/** Connects to the server of this number. */
const connectTo = (at: number, login: Login, clientId = login.id): Promise<MqttDevice> =>
  connectMqttDevice({ url: listeners[at % listeners.length] ?? "", ...login, clientId });

const isOnline = async (id: string): Promise<boolean> => (await master.get(`devices/${id}`)).json.online;

/** Numbers that are stored of a sender, in the order of arrival. */
const storedOf = async ({ topic }: Sender): Promise<number[]> => {
  const { text } = await master.get(`data?filter=${topic}`, { headers: { accept: "application/x-ndjson" } });
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => Number(JSON.parse(line).message));
};

test("each server keeps a copy of all that was acknowledged, of sessions, and of what is retained", async () => {
  for (const stream of ["$MQTT_msgs", "$MQTT_sess", "$MQTT_rmsgs"]) {
    expect(await cluster.replicasOf("DEVICES", stream)).toBe(3);
  }
  for (const stream of ["EVENTS", "QUEUE_MAIL", "DEAD_MAIL"]) {
    expect(await cluster.replicasOf("MESH", stream)).toBe(3);
  }
});

test("no will is published of sessions that a rotation closes, whichever server they are on", async () => {
  const login = await enrol("willed");
  const old = await Promise.all(
    listeners.map((url, at) =>
      connectMqttDevice(
        { url, ...login, clientId: `willed:${at}` },
        {
          will: {
            topic: "willed/shadow/update",
            payload: Buffer.from(`{"state":{"desired":{"${at}":1}}}`),
            qos: 1,
          },
        },
      ),
    ),
  );
  const closed = old.map((session) => session.closed());
  const { token } = (await master.post("devices/willed/token")).json;
  await Promise.all(closed);
  await using next = await connectTo(0, { id: "willed", token });
  await next.publish("willed/shadow/update", { state: { reported: { sign: 1 } } }, 1);
  const state = await eventually(async () => {
    const { shadow } = (await master.get("devices/willed")).json;
    return shadow.version > 0 && shadow.state;
  });
  expect(state).toMatchObject({ desired: {}, reported: { sign: 1 } });
});

test("calls, shadows and data work alike whichever server a device is connected to", async () => {
  await Promise.all(
    [0, 1, 2].map(async (at) => {
      const login = await enrol(`anywhere-${at}`);
      await using device = await connectTo(at, login);
      await device.answerRpc(({ params }) => ({ result: params }));
      await device.subscribe(`${login.id}/shadow/delta`, 1);
      await eventually(() => isOnline(login.id));
      expect((await master.post(`devices/${login.id}/rpc/echo`, { at })).json).toEqual({ at });
      await master.post(`devices/${login.id}`, { shadow: { state: { desired: { at } } } });
      await device.awaitMessage(({ payload }) => JSON.parse(payload).state?.at === at);
      await device.publish(`${login.id}/shadow/update`, { state: { reported: { at } } }, 1);
      await device.publish(`db/${login.id}/at`, String(at), 1);
      await eventually(
        async () => (await master.get(`devices/${login.id}`)).json.shadow.state.reported.at === at,
      );
      await eventually(async () => (await master.get(`data?device_id=${login.id}`)).json.length === 1);
    }),
  );
});

test("a client id that connects to another server takes its connection over, and the device stays online", async () => {
  const login = await enrol("roamer");
  await using before = await connectTo(0, login);
  await eventually(() => isOnline("roamer"));
  const closed = before.closed();
  await using now = await connectTo(1, login);
  await closed;
  await now.answerRpc(() => ({ result: "over here" }));
  expect((await master.get("devices/roamer/rpc/Where")).json).toBe("over here");
  expect(await isOnline("roamer")).toBe(true);
});

test("a new token closes the device's connections on every server", async () => {
  const login = await enrol("rotated");
  const connections = await Promise.all([0, 1, 2].map((at) => connectTo(at, login, `rotated:${at}`)));
  const closed = Promise.all(connections.map((connection) => connection.closed()));
  await eventually(() => isOnline("rotated"));
  expect((await master.post("devices/rotated/token")).status).toBe(200);
  await closed;
  for (const at of [0, 1, 2]) await expect(connectTo(at, login, `rotated:${at}`)).rejects.toThrow();
});

test("wrong passwords do not keep the right one out, at whichever server", async () => {
  const login = await enrol("guessed");
  for (let guess = 0; guess < 12; guess++) {
    await expect(connectTo(guess, { ...login, token: `dt_${"0".repeat(32)}` })).rejects.toThrow();
  }
  await using device = await connectTo(1, login);
  expect(device.client.connected).toBe(true);
});

/**
 * Bound for everything that comes back after a kill, in milliseconds. Idle cores need up to 70 s, for a device of the
 * lost server to be offline; with busy cores elections and logins take several times longer.
 */
const RECOVERY_MS = 120_000;

/** A device that is connected to one server after the other, as firmware does it, and answers calls. */
async function steadyDevice(login: Login) {
  let turn = 0;
  let wanted = true;
  let now: MqttDevice | null = null;
  const run = async () => {
    while (wanted) {
      const device = await connectTo(turn++, login).catch(() => null);
      if (!device) {
        await new Promise((resolve) => setTimeout(resolve, 200));
        continue;
      }
      // A subscription that is refused, as it is while the broker elects a leader, is a reason to connect anew.
      const listens = async () => {
        await device.answerRpc(() => ({ result: "here" }));
        return (await device.subscribe(`${login.id}/shadow/delta`, 1)) < 128;
      };
      const closed = device.closed();
      if (await Promise.race([listens().catch(() => false), closed.then(() => false)])) {
        now = device;
        await closed;
        now = null;
      }
      await device.client.endAsync(true).catch(() => undefined);
    }
  };
  const running = run();
  await eventually(() => now);
  return {
    /** The connection that it has; throws while it has none. */
    connection(): MqttDevice {
      if (!now) throw new Error(`${login.id} is not connected`);
      return now;
    },
    async [Symbol.asyncDispose]() {
      wanted = false;
      await now?.client.endAsync(true);
      await running;
    },
  };
}

/** Kills a server while devices publish, and brings it back once all that is promised was seen without it. */
async function surviveLossOf(victim: TestNatsServer, senders: readonly Sender[], round: number) {
  const at = cluster.servers.indexOf(victim);
  const lost = await enrol(`lost-${round}`);
  await using steady = await steadyDevice(await enrol(`steady-${round}`));
  await using _lost = await connectTo(at, lost);
  await eventually(async () => (await isOnline(lost.id)) && (await isOnline(`steady-${round}`)));
  const sentBefore = senders.map(({ acknowledged }) => acknowledged.size);
  let tries = 0;

  await victim.kill("SIGKILL");
  const comesBack: Record<string, () => Promise<boolean> | boolean> = {
    "a device can be created": async () =>
      (await master.post("devices", { id: `new-${round}-${tries++}` })).status === 201,
    "every device publishes again": () =>
      senders.every(({ acknowledged }, nth) => acknowledged.size > (sentBefore[nth] ?? 0) + 20),
    "a device is called": async () =>
      (await master.get(`devices/steady-${round}/rpc/who?timeout=1000`)).json === "here",
    "a shadow change reaches its device": async () => {
      const wanted = tries++;
      const path = `devices/steady-${round}`;
      const { status } = await master.post(path, { shadow: { state: { desired: { wanted } } } });
      const isDelta = ({ payload }: { payload: string }) => payload.includes(`"wanted":${wanted}`);
      await steady.connection().awaitMessage(isDelta, 2_000);
      return status === 200;
    },
    "what is published is stored": async () => {
      const topic = `db/steady-${round}/try/${tries++}`;
      const device = steady.connection();
      await Promise.race([device.publish(topic, "here", 1), device.closed()]);
      await eventually(async () => (await master.get(`data?filter=${topic}`)).json.length === 1, {
        withinMs: 3_000,
      });
      return true;
    },
    "a device of the lost server is offline": async () => !(await isOnline(lost.id)),
  };
  const kept = Object.entries(comesBack).map(async ([what, holds]) => {
    await eventually(async () => await holds(), { withinMs: RECOVERY_MS, everyMs: 100 }).catch((cause) => {
      throw new Error(`${what}: not within ${RECOVERY_MS} ms of the loss of a server`, { cause });
    });
  });
  // All settle before the first failure is thrown, so that nothing runs on.
  for (const result of await Promise.allSettled(kept)) {
    if (result.status === "rejected") throw result.reason;
  }
  for (const { id } of senders) expect(await isOnline(id)).toBe(true);
  expect(await isOnline(`steady-${round}`)).toBe(true);

  await victim.restart();
  await cluster.caughtUp();
}

test("one server is killed under load, then another: nothing acknowledged is lost, nothing stored twice, and the service comes back", async () => {
  const ids = Array.from({ length: 12 }, (_, nth) => `sender-${nth}`);
  const senders = (await Promise.all(ids.map(enrol))).map((login) => startSender(login, listeners));
  try {
    await eventually(() => senders.every(({ acknowledged }) => acknowledged.size > 100));
    const first = await cluster.leaderOf("DEVICES", "$MQTT_msgs");
    await surviveLossOf(first, senders, 1);
    // The leader has taken over from the first one, which is back and stores what it missed.
    const second = await cluster.leaderOf("DEVICES", "$MQTT_msgs");
    const other = second === first ? cluster.servers.find((server) => server !== first) : second;
    if (!other) throw new Error("there is no other server");
    await surviveLossOf(other, senders, 2);
  } finally {
    await Promise.all(senders.map((sender) => sender.stop()));
  }
  for (const sender of senders) {
    const stored = await eventually(
      async () => {
        const numbers = await storedOf(sender);
        const have = new Set(numbers);
        return [...sender.acknowledged].every((number) => have.has(number)) ? numbers : null;
      },
      { everyMs: 500 },
    );
    expect(new Set(stored).size).toBe(stored.length);
  }
}, 420_000);

test("without two of three servers nothing is acknowledged and readiness says so; with one of them back all goes on", async () => {
  const login = await enrol("patient");
  const [first, ...others] = cluster.servers;
  if (!first) throw new Error("there is no server");
  const readiness = async (service: "data" | "rpc-bridge") => {
    const { ops } = (await mesh.parts()).services[service] ?? {};
    return (await fetch(`${ops}/readyz`)).status;
  };
  await using device = await connectTo(0, login);
  await device.publish("db/patient/n", "before", 1);
  await eventually(async () => (await readiness("data")) === 200 && (await readiness("rpc-bridge")) === 200);

  await Promise.all(others.map((server) => server.kill("SIGKILL")));
  let acknowledged = false;
  const hopeless = device.publish("db/patient/n", "during", 1).then(
    () => {
      acknowledged = true;
    },
    () => undefined,
  );
  await Promise.race([hopeless, device.closed()]);
  expect(acknowledged).toBe(false);
  await eventually(async () => (await readiness("data")) === 503 && (await readiness("rpc-bridge")) === 503);

  await others[0]?.restart();
  await eventually(
    async () => {
      await using again = await connectTo(0, login);
      return await Promise.race([
        again.publish("db/patient/n", "after", 1).then(() => true),
        again.closed().then(() => false),
      ]);
    },
    { everyMs: 500 },
  );
  await eventually(async () => {
    const { json } = await master.get("data?device_id=patient");
    const messages = json.map(({ message }: { message: string }) => message);
    return messages.includes("before") && messages.includes("after");
  });
  await eventually(async () => (await readiness("data")) === 200 && (await readiness("rpc-bridge")) === 200);
  await others[1]?.restart();
  await cluster.caughtUp();
}, 180_000);
