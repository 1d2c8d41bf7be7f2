import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { expect, test } from "@jest/globals";
import { asMaster, enrolDevice } from "../src/tenant.ts";
import { canCutPower, makeDisk, type PowerCutDisk } from "./power-cut-disk.ts";

/*
 * A power cut takes what programs wrote and did not sync. What was acknowledged and synced has to be there
 * afterwards, and what is acknowledged from then on, too. POWER_CUTS=10 cuts more often and prints what was lost.
 */

const rounds = Number(process.env.POWER_CUTS ?? 0);
/** Messages without an acknowledgement that the load keeps on their way. */
const inFlight = 50;
/** Messages published after a power cut. */
const afterwards = 700;

/** The load of one device is more than a device may publish by default. */
const withoutRate = { DEVICE_RATE_MESSAGES: "1000000" };

const cutting = canCutPower() ? test : test.skip;

/** When the acknowledgement of each message came, by the number that is its payload. */
type Acknowledged = Map<number, number>;

/** Publishes below `topic` without a pause until the connection or `stop` ends it. */
function keepPublishing(device: MqttDevice, topic: string, acknowledged: Acknowledged) {
  let next = 0;
  let stopped = false;
  const publish = () => {
    const number = next++;
    device.client.publish(topic, String(number), { qos: 1 }, (error) => {
      if (error) return;
      acknowledged.set(number, performance.now());
      if (!stopped) publish();
    });
  };
  for (let count = 0; count < inFlight; count++) publish();
  return () => {
    stopped = true;
  };
}

/**
 * Creates devices one after the other, and gives a state to each; `created` has those for which both answers came. The
 * pauses leave the disk to the messages, whose syncs are as slow.
 */
async function keepCreating(mesh: TestMesh, round: number, created: Map<string, string>): Promise<void> {
  for (let count = 0; ; count++) {
    const id = `made-${round}-${count}`;
    try {
      const { status, json } = await asMaster(mesh).post("devices", { id });
      if (status !== 201) return;
      const changed = await asMaster(mesh).post(`devices/${id}`, {
        shadow: { state: { desired: { count } } },
      });
      if (changed.status !== 200) return;
      created.set(id, json.token);
      await sleep(200);
    } catch {
      return;
    }
  }
}

/** Numbers stored below a topic. */
async function stored(mesh: TestMesh, topic: string): Promise<number[]> {
  const { text } = await asMaster(mesh).get(`data?filter=${topic}/n&limit=1000000`, {
    headers: { accept: "application/x-ndjson" },
  });
  return text.split("\n").flatMap((line) => (line === "" ? [] : [Number(JSON.parse(line).message)]));
}

/**
 * The longest that a sync of a little file took until `stop`, in milliseconds, on the disk that holds the file of
 * ours.
 */
function timeSyncs() {
  let longest = 0;
  let stopped = false;
  const timing = (async () => {
    await using file = await open(join(tmpdir(), `.devmesh-sync-${process.pid}`), "w");
    while (!stopped) {
      const begin = performance.now();
      await file.write("x", 0);
      await file.sync();
      longest = Math.max(longest, performance.now() - begin);
      await sleep(50);
    }
  })();
  return async () => {
    stopped = true;
    await timing;
    return longest;
  };
}

async function processesOf(mesh: TestMesh): Promise<number[]> {
  const { pid, nats_server, services } = await mesh.parts();
  const parts = [nats_server, ...Object.values(services)];
  return [pid, ...parts.flatMap((part) => (part ? [part.pid] : []))];
}

/** A mesh on a disk, the one that runs now. */
interface MeshOnDisk {
  readonly disk: PowerCutDisk;
  readonly sync: string;
  mesh: TestMesh;
}

/** One power cut: load, cut, start, load, count. */
async function cutOnce(
  running: MeshOnDisk,
  {
    token,
    round,
    dataPaused,
  }: { readonly token: string; readonly round: number; readonly dataPaused: boolean },
): Promise<void> {
  const { disk, sync, mesh } = running;
  const topic = `db/meter/round-${round}`;
  const env = { ...withoutRate, BROKER_SYNC: sync };
  const acknowledged: Acknowledged = new Map();
  const created = new Map<string, string>();
  const device = await connectMqttDevice({ url: mesh.mqttUrl, id: "meter", token });
  const syncsTimed = timeSyncs();
  const begin = performance.now();
  const stopPublishing = keepPublishing(device, `${topic}/n`, acknowledged);
  const creating = keepCreating(mesh, round, created);
  await eventually(() => acknowledged.size > 200);
  // From here on the broker alone holds what it acknowledges.
  if (dataPaused) await mesh.kill("data", "SIGSTOP");
  // At another moment between two syncs each time.
  const cutAfterMs = 4_000 + Math.random() * 1_000;
  await eventually(
    () => acknowledged.size > 1_000 && created.size > 3 && performance.now() - begin > cutAfterMs,
  );
  const processes = await processesOf(mesh);
  const cutAt = performance.now();
  await disk.cutPower(processes, async () => {
    stopPublishing();
    for (const pid of processes) process.kill(pid, "SIGKILL");
    await mesh.ended();
  });
  await device.client.endAsync(true);
  await creating;
  await mesh.stop();
  // The broker begins its interval after a sync has ended, so that the time of a sync adds to it, as does what a busy
  // machine delays.
  const marginMs = 1_000 + 2 * (await syncsTimed());

  const recovered = await startMesh({ dataDir: join(disk.path, "data"), env });
  running.mesh = recovered;
  const again = await connectMqttDevice({ url: recovered.mqttUrl, id: "meter", token });
  const numbers = Array.from({ length: afterwards }, (_, at) => at);
  await Promise.all(numbers.map((number) => again.publish(`${topic}/after/n`, String(number), 1)));
  await again.leave();
  const kept = await eventually(
    async () => {
      const after = await stored(recovered, `${topic}/after`);
      expect(after.toSorted((a, b) => a - b)).toEqual(numbers);
      // What data had received when it died is delivered again later than what follows.
      expect((await asMaster(recovered).get("mesh")).json.queues.data).toBe(0);
      return await stored(recovered, topic);
    },
    { everyMs: 250 },
  );
  expect(new Set(kept).size).toBe(kept.length);
  const keptNumbers = new Set(kept);
  const lost = [...acknowledged].filter(([number]) => !keptNumbers.has(number));
  const ages = lost.map(([, at]) => cutAt - at);
  const oldestMs = Math.max(0, ...ages);
  if (rounds > 0) {
    const figures = {
      sync,
      round,
      dataPaused,
      acknowledged: acknowledged.size,
      lost: lost.length,
      oldestMs,
      marginMs,
    };
    process.stderr.write(`${JSON.stringify({ ...figures, created: created.size })}\n`);
  }
  if (sync === "always") expect(lost).toEqual([]);
  else expect(oldestMs).toBeLessThan(100 + marginMs);

  for (const [id, itsToken] of created) {
    const { status, json } = await asMaster(recovered).get(`devices/${id}`);
    expect({ id, status }).toEqual({ id, status: 200 });
    expect(json.shadow.state.desired).toEqual({ count: Number(id.split("-")[2]) });
    const login = await connectMqttDevice({ url: recovered.mqttUrl, id, token: itsToken });
    await login.leave();
  }
}

cutting.each([
  { sync: "100ms", cuts: rounds || 2, lost: "at most what was acknowledged in the last 100 ms" },
  { sync: "always", cuts: rounds || 1, lost: "nothing" },
])(
  "with BROKER_SYNC=$sync a power cut loses $lost, and what is acknowledged afterwards is stored",
  async ({ sync, cuts }) => {
    await using disk = await makeDisk();
    const mesh = await startMesh({
      dataDir: join(disk.path, "data"),
      env: { ...withoutRate, BROKER_SYNC: sync },
    });
    const running = { disk, sync, mesh };
    try {
      const { token } = await enrolDevice(mesh, "meter");
      for (let round = 1; round <= cuts; round++)
        await cutOnce(running, { token, round, dataPaused: round === cuts || round % 2 === 0 });
    } finally {
      await running.mesh.stop();
    }
  },
  300_000 + 300_000 * (rounds || 1),
);
