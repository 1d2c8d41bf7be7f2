import { join } from "node:path";
import { serviceNames } from "@devmesh/contracts/mesh";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { type SmtpSink, startSmtpSink } from "@devmesh/testkit/smtp-sink";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { asAnyone, asMaster, type EnrolledDevice, enrolDevice } from "../src/tenant.ts";
import { alerts } from "./durability/alerts.suite.ts";
import { servicesHang } from "./durability/hanging.suite.ts";
import { invitation } from "./durability/invitation.suite.ts";
import { cacheMs, keysStopped } from "./durability/keys-stopped.suite.ts";
import { storageFills, streamBytes } from "./durability/storage.suite.ts";

const counted = async (mesh: TestMesh, filter: string): Promise<number[]> => {
  const { text } = await asMaster(mesh).get(`data?filter=${filter}`, {
    headers: { accept: "application/x-ndjson" },
  });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => Number(JSON.parse(line).message.split(" ")[1]));
};

/** All that a client can read. */
async function read(mesh: TestMesh) {
  const of = async (path: string) => (await asMaster(mesh).get(path)).json;
  return {
    device: { ...(await of("devices/meter")), last_seen: null },
    credentials: await of("devices/meter/credentials"),
    keys: (await of("keys")).map((key: object) => ({ ...key, last_used: null })),
    data: await of("data"),
    customers: await of("customers"),
  };
}

describe("a mesh that was stopped and started again", () => {
  let folder: TempFolder;
  let sink: SmtpSink;
  let meter: EnrolledDevice;
  let before: { readonly masterKey: string; readonly read: Awaited<ReturnType<typeof read>> };
  let mesh: TestMesh;

  beforeAll(async () => {
    folder = await tempFolder();
    const dataDir = join(folder.path, "data");
    const refusing = await startSmtpSink();
    refusing.behave(() => ({ refuse: 450 }));
    const first = await startMesh({ dataDir, env: { SMTP_URL: refusing.url } });
    meter = await enrolDevice(first, "meter");
    const device = await meter.connect();
    await device.publish("db/meter/kwh", "17", 1);
    await device.leave();
    const rate = { name: "Meter", shadow: { state: { desired: { rate: 5 } } } };
    await asMaster(first).post("devices/meter", rate);
    await asAnyone(first).get("/newcustomer?email=ann@example.com");
    await eventually(() => refusing.attempts.length > 0);
    await eventually(async () => (await asMaster(first).get("data")).json.length === 1);
    before = { masterKey: first.masterKey, read: await read(first) };
    await first.stop();
    await refusing.stop();

    sink = await startSmtpSink();
    mesh = await startMesh({
      dataDir,
      env: {
        SMTP_URL: sink.url,
        DEVICE_RATE_MESSAGES: "1000000",
        DEVICE_RATE_BYTES: "1000000000",
        DEVICE_STREAM_MAX_BYTES: String(streamBytes),
        KEY_CACHE_MS: String(cacheMs),
      },
    });
  }, 120_000);
  afterAll(async () => {
    await mesh?.stop();
    await sink?.stop();
    await folder?.remove();
  });

  test("has everything: devices, keys, shadows, records, customers, mail still queued, the same master key", async () => {
    expect(mesh.masterKey).toBe(before.masterKey);
    expect(await read(mesh)).toEqual(before.read);
    await sink.awaitMail((mail) => mail.to.includes("ann@example.com"), 20_000);
    const again = await connectMqttDevice({ url: mesh.mqttUrl, id: "meter", token: meter.token });
    await again.leave();
  });

  invitation(
    () => mesh,
    () => sink,
  );
  alerts(
    () => mesh,
    () => sink,
  );
  keysStopped(() => mesh);
  servicesHang(() => mesh);
  storageFills(() => mesh);

  test.each(["data", "rpc-bridge", "nats-server"] as const)(
    "kill -9 of %s under QoS 1 load: every acknowledged message is stored, counted, none twice",
    async (victim) => {
      let loading = true;
      try {
        const meter = await enrolDevice(mesh, `meter-${victim}`);
        const acknowledged = new Set<number>();
        let next = 0;
        // A sender that gives up a message it got no acknowledgement for, so that none is sent twice.
        const load = async () => {
          while (loading) {
            const device = await meter.connect().catch(() => null);
            if (!device) {
              await new Promise((resolve) => setTimeout(resolve, 100));
              continue;
            }
            const closed = device.closed();
            while (loading && device.client.connected) {
              const batch = Array.from({ length: 50 }, () => next++);
              const settled = Promise.allSettled(
                batch.map(async (n) => {
                  await device.publish(`db/${meter.id}/count`, `n ${n}`, 1);
                  acknowledged.add(n);
                }),
              );
              await Promise.race([settled, closed]);
            }
            await device.client.endAsync(true).catch(() => null);
          }
        };
        const running = load();
        for (const at of [500, 3000]) {
          await eventually(() => acknowledged.size > at);
          await eventually(() => mesh.kill(victim, "SIGKILL").then(() => true));
        }
        const reached = acknowledged.size;
        await eventually(() => acknowledged.size > reached + 500);
        loading = false;
        await running;
        const stored = await eventually(
          async () => {
            const numbers = await counted(mesh, `db/${meter.id}/count`);
            const have = new Set(numbers);
            return [...acknowledged].every((n) => have.has(n)) ? numbers : null;
          },
          { withinMs: 45_000, everyMs: 500 },
        );
        expect(new Set(stored).size).toBe(stored.length);
      } finally {
        loading = false;
      }
    },
    150_000,
  );

  test("a mesh whose services are killed one after the other comes back by itself", async () => {
    const bell = await enrolDevice(mesh, "bell");
    // A queue whose broker was just killed takes jobs again when a leader is elected.
    await eventually(
      async () => (await asAnyone(mesh).get("/newcustomer?email=bob@example.com")).status === 202,
      { everyMs: 1_000 },
    );
    await sink.awaitMail((mail) => mail.to.includes("bob@example.com"));
    for (const service of [...serviceNames, "nats-server"] as const) {
      await mesh.kill(service, "SIGKILL");
      await eventually(
        async () => {
          const device = await bell.connect();
          try {
            await device.answerRpc(() => ({ result: service }));
            const { json } = await asMaster(mesh).get("devices/bell/rpc/who?timeout=2000");
            return json === service && (await asMaster(mesh).get("data")).status === 200;
          } finally {
            await device.leave();
          }
        },
        { withinMs: 45_000, everyMs: 250 },
      );
    }
  }, 240_000);
});
