import { setTimeout as sleep } from "node:timers/promises";
import { type ServiceName, serviceNames } from "@devmesh/contracts/mesh";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { type StartedReplica, startReplica } from "@devmesh/testkit/replica";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type RestClient, restClient } from "../src/rest-client.ts";
import { asMaster, enrolDevice } from "../src/tenant.ts";

describeOverMongodb("two of every service", () => {
  let mesh: TestMesh;
  const replicas = new Map<string, StartedReplica>();
  let left: RestClient;
  let right: RestClient;

  const startSecond = (service: ServiceName) =>
    startReplica(mesh.dataDir, service, {
      ...(mesh.storeUrl === undefined ? {} : { STORE_URL: mesh.storeUrl }),
      LAME_DUCK_MS: "1500",
    });

  beforeAll(async () => {
    mesh = await startMesh({ store: "mongodb", env: { LAME_DUCK_MS: "1500", DRAIN_MS: "30000" } });
    for (const service of serviceNames) replicas.set(service, await startSecond(service));
    left = asMaster(mesh);
    right = restClient(replicas.get("gateway")?.url ?? "", mesh.masterKey);
  }, 180_000);
  afterAll(async () => {
    await Promise.all([...replicas.values()].map((replica) => replica.end()));
    await mesh?.stop();
  }, 120_000);

  /** How often a replica has answered a method, by its own metrics. */
  async function answered(service: ServiceName, method: string): Promise<number[]> {
    const { services: parts } = await mesh.parts();
    const addresses = [parts[service]?.ops, replicas.get(service)?.ops];
    return await Promise.all(
      addresses.map(async (ops) => {
        const text = await (await fetch(`${ops}/metrics`)).text();
        const counts = text.matchAll(
          new RegExp(`^devmesh_call_duration_seconds_count\\{[^}]*method="${method}"[^}]*\\} (\\d+)`, "gm"),
        );
        return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
      }),
    );
  }

  test("an RPC's answer reaches the bridge that asked, whichever it was and in whatever order", async () => {
    const lamp = await enrolDevice(mesh, "lamp");
    await using device = await lamp.connect();
    const held: (() => void)[] = [];
    await device.answerRpc(async ({ params }) => {
      // Answered from the last to the first, as soon as so many wait.
      await new Promise<void>((resolve) => {
        held.push(resolve);
        if (held.length % 20 === 0) for (const release of held.splice(0).reverse()) release();
      });
      return { result: params };
    });
    const numbers = Array.from({ length: 200 }, (_, number) => number);
    const answers = await Promise.all(
      numbers.map((number) =>
        (number % 2 === 0 ? left : right).post("devices/lamp/rpc/Echo?timeout=30000", { number }),
      ),
    );
    expect(answers.map(({ status, json }) => [status, json?.number])).toEqual(
      numbers.map((number) => [200, number]),
    );
    for (const calls of await answered("rpc-bridge", "call")) expect(calls).toBeGreaterThan(0);
  });

  test("presence is neither lost nor doubled, and both sides tell the same", async () => {
    const ids = Array.from({ length: 12 }, (_, number) => `meter-${number}`);
    const devices: MqttDevice[] = [];
    for (const id of ids) devices.push(await (await enrolDevice(mesh, id)).connect());
    const online = async (side: RestClient) =>
      ((await side.get("devices?online=true&filter=meter-")).json as { id: string }[])
        .map(({ id }) => id)
        .sort();
    // Each question may be answered by another replica of `devices`.
    const allTell = async (expected: string[]) => {
      for (let round = 0; round < 4; round++)
        for (const side of [left, right])
          if (JSON.stringify(await online(side)) !== JSON.stringify(expected)) return false;
      return true;
    };
    await eventually(() => allTell([...ids].sort()));
    await Promise.all(devices.splice(0, 6).map((device) => device.leave()));
    await eventually(() => allTell(ids.slice(6).sort()));
    await Promise.all(devices.map((device) => device.leave()));
    await eventually(() => allTell([]));
  });

  test("shadow writes from both sides and from the device make one version each", async () => {
    const pump = await enrolDevice(mesh, "pump");
    await using device = await pump.connect();
    await device.subscribe("pump/shadow/update/accepted");
    const writes = Array.from({ length: 60 }, (_, number) => number);
    const answers = await Promise.all([
      ...writes.map((number) =>
        (number % 2 === 0 ? left : right).post("devices/pump", {
          shadow: { state: { desired: { [`d${number}`]: number } } },
        }),
      ),
      ...writes.map((number) =>
        device.publish("pump/shadow/update", { state: { reported: { [`r${number}`]: number } } }, 1),
      ),
    ]);
    expect(answers.filter((answer) => answer && answer.status !== 200)).toEqual([]);
    await eventually(() => device.messages.length === writes.length);
    const { shadow } = (await right.get("devices/pump")).json;
    expect(shadow.version).toBe(2 * writes.length);
    const { online, ...reported } = shadow.state.reported;
    expect(online).toBe(true);
    expect(shadow.state.desired).toEqual(Object.fromEntries(writes.map((number) => [`d${number}`, number])));
    expect(reported).toEqual(Object.fromEntries(writes.map((number) => [`r${number}`, number])));
  });

  test("what a device reports last stays, with two bridges at work", async () => {
    const dial = await enrolDevice(mesh, "dial");
    await using device = await dial.connect();
    const last = 150;
    await Promise.all(
      Array.from({ length: last + 1 }, (_, value) =>
        device.publish("dial/shadow/update", { state: { reported: { value } } }, 1),
      ),
    );
    const dialNow = async () => (await left.get("devices/dial")).json.shadow;
    await eventually(async () => (await dialNow()).version === last + 1);
    expect((await dialNow()).state.reported.value).toBe(last);
  });

  test("a key revoked through one gateway is refused by the other, though it has it in its cache for a minute", async () => {
    const { json: key } = await left.post("keys", { name: "short-lived" });
    const url = replicas.get("gateway")?.url ?? "";
    const asKey = restClient(url, key.key);
    expect((await asKey.get("devices?limit=1")).status).toBe(200);
    expect((await left.delete(`keys/${key.id}`)).status).toBe(204);
    await eventually(async () => (await asKey.get("devices?limit=1")).status === 401, { everyMs: 20 });
  });

  test("each record is stored once, in its device's order, at each QoS", async () => {
    const gauge = await enrolDevice(mesh, "gauge");
    await using device = await gauge.connect();
    const numbers = Array.from({ length: 1_000 }, (_, number) => number);
    await Promise.all(numbers.map((number) => device.publish("db/gauge/kept", String(number), 1)));
    await Promise.all(
      numbers.slice(0, 50).map((number) => device.publish("db/gauge/once", String(number), 2)),
    );
    await Promise.all(
      numbers.slice(0, 50).map((number) => device.publish("db/gauge/loose", String(number), 0)),
    );
    const records = async (topic: string) =>
      ((await right.get(`data?limit=5000&filter=db/gauge/${topic}`)).json as { message: string }[]).map(
        ({ message }) => Number(message),
      );
    await eventually(async () => (await records("kept")).length >= numbers.length);
    expect(await records("kept")).toEqual(numbers);
    await eventually(async () => (await records("once")).length >= 50);
    expect(await records("once")).toEqual(numbers.slice(0, 50));
    await eventually(async () => (await records("loose")).length >= 50);
    expect((await records("loose")).sort((a, b) => a - b)).toEqual(numbers.slice(0, 50));
  });

  test("a restart of every replica, one after the other under load, fails no request but such as may be tried again", async () => {
    const bell = await enrolDevice(mesh, "bell");
    const ringing = await bell.connect();
    await ringing.answerRpc(({ params }) => ({ result: params ?? null }));
    const counts = { done: 0, unavailable: 0, restarting: 0 };
    const wrong: unknown[] = [];
    let loading = true;
    let published = 0;

    /** As a balancer does: only to gateways that say they are ready, and elsewhere when nobody takes the connection. */
    const gateways = () => [
      { url: mesh.url, ops: async () => (await mesh.parts()).services.gateway?.ops },
      {
        url: replicas.get("gateway")?.url ?? "",
        ops: async () => replicas.get("gateway")?.ops,
      },
    ];
    const ready = new Set<string>();
    const watching = (async () => {
      while (loading) {
        for (const { url, ops } of gateways()) {
          const isReady = await fetch(`${await ops()}/readyz`).then(
            ({ status }) => status === 200,
            () => false,
          );
          if (isReady) ready.add(url);
          else ready.delete(url);
        }
        await sleep(100);
      }
    })();
    await eventually(() => ready.size === 2);

    const requests: ((client: RestClient, turn: number) => ReturnType<RestClient["get"]>)[] = [
      (client) => client.get("devices/bell"),
      (client, turn) => client.post("devices/bell", { shadow: { state: { desired: { turn } } } }),
      (client, turn) => client.post("devices/bell/rpc/Echo?timeout=20000", { turn }),
      (client) => client.get("data?limit=10&skip=-10"),
      (client) => client.get("keys"),
    ];
    const worker = async (turn: number) => {
      for (let at = turn; loading; at++) {
        const [url] = [...ready].sort(() => Math.random() - 0.5);
        const request = requests[at % requests.length];
        if (url === undefined || request === undefined) continue;
        try {
          const { status, headers, json } = await request(restClient(url, mesh.masterKey), at);
          if (status === 200) counts.done++;
          else if (status === 503 && headers.has("retry-after"))
            counts[json?.reason === "bridge_restarting" ? "restarting" : "unavailable"]++;
          else wrong.push({ at: at % requests.length, status, reason: json?.reason });
        } catch (error) {
          const cause = (error as { cause?: { code?: string } }).cause?.code;
          if (cause !== "ECONNREFUSED")
            wrong.push({ at: at % requests.length, url, cause, error: String(error) });
        }
      }
    };
    const publishing = (async () => {
      while (loading) {
        await ringing.publish("db/bell/rings", String(published++), 1);
        // Less than the 2,000 a second that a device may publish.
        await sleep(2);
      }
    })();
    const workers = Array.from({ length: 6 }, (_, turn) => worker(turn));

    for (const service of serviceNames) {
      const formerPid = await mesh.pidOf(service);
      await mesh.kill(service, "SIGTERM");
      await mesh.restarted(service, formerPid);
      const before = counts.done;
      // So many for each restart that what a client has to try again stays the exception on a slow machine, too.
      await eventually(() => counts.done > before + 150);
      await replicas.get(service)?.end();
      replicas.set(service, await startSecond(service));
    }
    const before = counts.done;
    await eventually(() => counts.done > before + 50);
    loading = false;
    await Promise.all([...workers, publishing, watching]);
    await ringing.leave();
    expect(wrong).toEqual([]);
    expect(counts.done).toBeGreaterThan(200);
    // What a client may have to try again is the exception.
    expect(counts.unavailable + counts.restarting).toBeLessThan(counts.done / 20);
    await eventually(
      async () =>
        (await asMaster(mesh).get("data?limit=5000&skip=-5000&filter=db/bell/rings")).json.length ===
        Math.min(published, 5_000),
    );
  }, 480_000);
});
