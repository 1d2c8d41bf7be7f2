/**
 * Firmware pushed in pieces by a job, against MQTT.js, which sends the same pieces to the same devices over the same
 * broker: the time of a piece, and what it costs, for one device and for many at a time.
 * `node bench/firmware-push.ts [devices]`
 */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh } from "@devmesh/testkit/mesh";
import { startChild } from "./child.ts";
import { connectDirectCaller } from "./device-calls.ts";
import { median, reportFigures } from "./measure.ts";
import { createDevices, withoutRateLimits } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const many = Number(process.argv[2] ?? 200);
const chunk = 2_048;
/** Devices in turn: how many, how fast each answers in milliseconds, and the size of the file. The first warms up. */
const rounds = [
  { devices: 1, answerMs: 0, size: 2 ** 21 },
  { devices: 1, answerMs: 50, size: 2 ** 20 },
  { devices: 1, answerMs: 5, size: 2 ** 20 },
  { devices: many, answerMs: 1_000, size: 2 ** 16 },
  { devices: many, answerMs: 150, size: 2 ** 18 },
  { devices: many, answerMs: 50, size: 2 ** 18 },
];

await using mesh = await startMesh({ store: "sqlite", broker: "own", env: withoutRateLimits });
const all = await createDevices(mesh, many);
const pids = Object.values(await meshProcesses(mesh));

async function post<T>(path: string, body: object | Buffer<ArrayBuffer>): Promise<T> {
  const answer = await mesh.http(`/api/v2/${path}`, { body });
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`);
  return answer.json as T;
}

/** Updates devices from version 0 to 1, and resolves when their job has ended. */
async function update(ids: readonly string[], size: number): Promise<void> {
  const content = randomBytes(size);
  const sha256 = createHash("sha256").update(content).digest("hex");
  const names = { name: sha256, version: "1" };
  const firmware = await post<{ readonly id: string }>("firmware", { ...names, size, sha256 });
  await post(`firmware/${firmware.id}/content`, content);
  const action = { kind: "firmware", firmware_id: firmware.id, via: "push", chunk, stable: "PT1S" };
  const rollout = { concurrency: ids.length };
  const job = await post<{ readonly id: string }>("jobs", { target: { ids }, action, rollout });
  for (;;) {
    await sleep(1_000);
    const { json } = await mesh.http(`/api/v2/jobs/${job.id}`, {});
    const { state, counts } = json as { readonly state: string; readonly counts: Record<string, number> };
    if (state !== "done") continue;
    if (counts.succeeded !== ids.length) throw new Error(`the job ended with ${JSON.stringify(counts)}`);
    return;
  }
}

await using caller = await connectDirectCaller(mesh);

/** Sends the pieces of a file without what makes an update of them. */
async function pushDirectly(device: string, size: number): Promise<void> {
  await caller.call(device, "OTA.Begin", { size });
  const data = randomBytes(chunk).toString("base64");
  for (let at = 0; at < size; at += chunk) await caller.call(device, "OTA.Write", { data });
}

for (const [round, { devices, answerMs, size }] of rounds.entries()) {
  const updated = all.slice(0, devices);
  await using child = startChild(import.meta.resolve("./firmware/pushed-devices.ts"), {
    DEVICES: JSON.stringify(updated),
    MQTT_URL: mesh.mqttUrl,
    ANSWER_MS: String(answerMs),
  });
  await child.ready;
  await sleep(3_000);
  const pieces = Math.ceil(size / chunk);
  const perPiece = async () => ((await child.ask()) as number[]).map((ms) => ms / pieces);
  await Promise.all(updated.map(({ id }) => pushDirectly(id, size)));
  const direct = await perPiece();
  const before = await cpuSeconds(pids);
  await update(
    updated.map(({ id }) => id),
    size,
  );
  const cpu = (await cpuSeconds(pids)) - before;
  const pushed = await perPiece();
  if (round === 0) continue;
  const title = `${devices} at a time, answers after ${answerMs} ms`;
  reportFigures([
    {
      name: `${title}: ms a piece`,
      ours: { name: "push", values: [median(pushed)] },
      peer: { name: "MQTT.js", values: [median(direct)] },
      goal: { ratio: 1.2 },
      digits: 1,
    },
    {
      name: `${title}: ms of processor time of the mesh a piece`,
      ours: { name: "push", values: [(cpu * 1_000) / (pieces * devices)] },
      digits: 2,
    },
  ]);
}
