/**
 * Firmware pushed in pieces: how long devices wait for the next piece beyond the time in which they answer, and what a
 * piece costs, for one device and for many at a time. `node bench/firmware-push.ts [devices]`
 */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh } from "@devmesh/testkit/mesh";
import { startChild } from "./child.ts";
import { median, reportFigures } from "./measure.ts";
import { createDevices, withoutRateLimits } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const many = Number(process.argv[2] ?? 200);
const chunk = 2_048;
/** Devices in turn: how many, how fast each answers in milliseconds, and the size of the file. */
const rounds = [
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

for (const { devices, answerMs, size } of rounds) {
  const updated = all.slice(0, devices);
  await using child = startChild(import.meta.resolve("./firmware/pushed-devices.ts"), {
    DEVICES: JSON.stringify(updated),
    MQTT_URL: mesh.mqttUrl,
    ANSWER_MS: String(answerMs),
  });
  await child.ready;
  await sleep(3_000);
  const before = await cpuSeconds(pids);
  await update(
    updated.map(({ id }) => id),
    size,
  );
  const cpu = (await cpuSeconds(pids)) - before;
  const pieces = Math.ceil(size / chunk);
  const title = `${devices} at a time, answers after ${answerMs} ms`;
  const perPiece = ((await child.ask()) as number[]).map((ms) => ms / pieces);
  reportFigures([
    {
      name: `${title}: ms a piece`,
      ours: { name: "push", values: [median(perPiece)] },
      peer: { name: "round trip", values: [answerMs] },
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
