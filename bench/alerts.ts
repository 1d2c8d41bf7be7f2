/**
 * What alerts cost and how soon they arrive: 100 rules on records that are stored, and on those stored while `alerts`
 * was away, a rule tried on 1,000,000 records, 100,000 devices with a rule on silence, and a mail for a record.
 * `node bench/alerts.ts [part] [size]`
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { startSmtpSink } from "@devmesh/testkit/smtp-sink";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { seedRecords } from "./alerts/seeded-records.ts";
import { seedDevices } from "./dashboard/seeded-devices.ts";
import { publish } from "./ingestion/publisher.ts";
import { type Figure, reportFigures } from "./measure.ts";
import { createDevices, withoutRateLimits } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses, residentMemory } from "./process-usage.ts";

const parts = { rules: 60_000, following: 60_000, trial: 1_000_000, silence: 100_000, mail: 10 } as const;
const asked = process.argv[2];
const env = withoutRateLimits;
const rounds = 3;
const ruleCount = 100;

/** How long the cost of a silent mesh is measured, in milliseconds, and what is waited for before it and others. */
const idleMs = 20_000;
const settleMs = 15_000;
const sweepMs = 31_000;

const figure = (name: string, values: readonly number[], goal?: number, digits = 2): Figure => ({
  name,
  ours: { name: "mesh", values },
  digits,
  ...(goal !== undefined && { goal: { value: goal } }),
});

async function create(mesh: TestMesh, path: string, body: object): Promise<string> {
  const { status, text, json } = await mesh.http(`/api/v2/${path}`, { body });
  if (status !== 201) throw new Error(`${path}: ${status} ${text}`);
  return (json as { id: string }).id;
}

/** Rules on values of the records of the benchmark, which none of them fires. */
async function createRules(mesh: TestMesh, more: object): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 0; at < ruleCount; at++) {
    const topic = `telemetry/${at % 3}`;
    const when = { kind: "value", topic, pointer: "/humidity", is: ">", than: 1_000 + at };
    ids.push(await create(mesh, "rules", { name: `rule ${at}`, when, ...more }));
  }
  return ids;
}

/** Reads how many records of QoS 1 `data` has stored. */
async function storedCounter(mesh: TestMesh): Promise<() => Promise<number>> {
  const { services } = await mesh.parts();
  return async () => {
    const metrics = await (await fetch(`${services.data?.ops}/metrics`)).text();
    return Number(/^devmesh_data_records_stored_total\{[^}]*qos="1"[^}]*\} (\d+)/m.exec(metrics)?.[1] ?? 0);
  };
}

/** Resolves when `data` has nothing to do: every 30 s it adds up the numbers of stored records. */
async function becomesIdle(pid: number): Promise<void> {
  await sleep(sweepMs);
  for (let before = Number.NaN; ; await sleep(1_000)) {
    const now = await cpuSeconds([pid]);
    if (now - before < 0.05) return;
    before = now;
  }
}

/** The processor time of `alerts` and `data` while records are stored, without rules and with them. */
async function rules(records: number): Promise<Figure[]> {
  await using folder = await tempFolder();
  await using mesh = await startMesh({ env });
  const devices = (await createDevices(mesh, 100)).map((device) => ({ ...device, clientId: device.id }));
  const { alerts = Number.NaN, data = Number.NaN } = await meshProcesses(mesh);
  const stored = await storedCounter(mesh);
  async function measure() {
    const [ofAlerts, ofData, before] = [await cpuSeconds([alerts]), await cpuSeconds([data]), await stored()];
    const load = { kind: "records", messages: records, inFlight: 1_000 } as const;
    await publish({ port: mesh.ports.mqtt, folder: folder.path, publishers: devices, ...load });
    while ((await stored()) < before + records) await sleep(100);
    await becomesIdle(data);
    return { alerts: (await cpuSeconds([alerts])) - ofAlerts, data: (await cpuSeconds([data])) - ofData };
  }
  const ids = await createRules(mesh, { enabled: false });
  const enable = async (enabled: boolean) => {
    for (const id of ids) await mesh.http(`/api/v2/rules/${id}`, { body: { enabled } });
    await sleep(2_000);
  };
  const ratios: number[] = [];
  const extra: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    await enable(false);
    const without = await measure();
    await enable(true);
    const among = await measure();
    if (round === 0) continue;
    ratios.push(among.alerts / among.data);
    extra.push((among.alerts + among.data - without.alerts - without.data) / without.data);
  }
  return [
    figure(`${ruleCount} rules, processor time of alerts by that of data`, ratios, 0.15),
    figure(
      `${ruleCount} rules, processor time of both that rules add, by that of data without them`,
      extra,
      0.15,
    ),
  ];
}

/** The processor time of following records alone: `alerts` is paused while they are stored, and reads them then. */
async function following(records: number): Promise<Figure[]> {
  await using folder = await tempFolder();
  await using mesh = await startMesh({ env });
  const devices = (await createDevices(mesh, 100)).map((device) => ({ ...device, clientId: device.id }));
  const [device] = devices;
  const { alerts = Number.NaN, data = Number.NaN } = await meshProcesses(mesh);
  if (device === undefined) throw new Error("there is no device");
  await using connection = await connectMqttDevice({
    url: mesh.mqttUrl,
    ...device,
    clientId: `${device.id}:end`,
  });
  const stored = await storedCounter(mesh);
  await createRules(mesh, {});
  const end = await create(mesh, "rules", {
    name: "end",
    when: { kind: "value", topic: "end", is: ">", than: 0 },
  });
  const ended = async () => {
    const { json } = await mesh.http(`/api/v2/alerts?state=firing&rule_id=${end}`);
    return (json as readonly unknown[]).length > 0;
  };
  await sleep(2_000);
  const ratios: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    process.kill(alerts, "SIGSTOP");
    const [ofData, before] = [await cpuSeconds([data]), await stored()];
    const load = { kind: "records", messages: records, inFlight: 1_000 } as const;
    await publish({ port: mesh.ports.mqtt, folder: folder.path, publishers: devices, ...load });
    await connection.publish(`db/${device.id}/end`, "1", 1);
    while ((await stored()) < before + records + 1) await sleep(100);
    await becomesIdle(data);
    const storing = (await cpuSeconds([data])) - ofData;
    const began = await cpuSeconds([alerts, data]);
    process.kill(alerts, "SIGCONT");
    while (!(await ended())) await sleep(200);
    const reading = (await cpuSeconds([alerts, data])) - began;
    await connection.publish(`db/${device.id}/end`, "0", 1);
    while (await ended()) await sleep(200);
    if (round > 0) ratios.push(reading / storing);
  }
  return [figure(`${ruleCount} rules, processor time of following by that of storing`, ratios, 0.15)];
}

/** A rule that is tried on stored records. */
async function trial(records: number): Promise<Figure[]> {
  await using folder = await tempFolder();
  const count = 1_000;
  await seedDevices(folder.path, count);
  await seedRecords(folder.path, { records, devices: count });
  await using mesh = await startMesh({ dataDir: folder.path, store: "sqlite", env });
  const times: number[] = [];
  let isCut = false;
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    const when = { kind: "value", topic: "telemetry", pointer: "/humidity", is: ">", than: 79.9 };
    const { status, text, json } = await mesh.http("/api/v2/rules/try?over=P7D", {
      body: { name: "try", when },
    });
    if (status !== 200) throw new Error(`${status} ${text}`);
    isCut ||= (json as { cut: boolean }).cut;
    times.push((performance.now() - began) / 1_000);
  }
  return [figure(`a trial over ${records} records${isCut ? ", cut" : ""}, s`, times, 10.5)];
}

/** What a rule on silence costs while nothing happens. */
async function silence(devices: number): Promise<Figure[]> {
  await using folder = await tempFolder();
  await seedDevices(folder.path, devices);
  await using mesh = await startMesh({ dataDir: folder.path, store: "sqlite", env });
  const { alerts = Number.NaN } = await meshProcesses(mesh);
  async function measure() {
    await sleep(settleMs);
    const [cpu, began] = [await cpuSeconds([alerts]), performance.now()];
    await sleep(idleMs);
    const core = (((await cpuSeconds([alerts])) - cpu) / (performance.now() - began)) * 100_000;
    return { core, rss: (await residentMemory(alerts)).rss };
  }
  const before = await measure();
  await create(mesh, "rules", { name: "silent", when: { kind: "silent", longer_than: "P365D" } });
  const after = await measure();
  return [
    figure(`${devices} devices with a rule on silence, % of a core more`, [after.core - before.core], 2),
    figure(`${devices} devices with a rule on silence, MB more`, [after.rss - before.rss], 60, 1),
  ];
}

/** From a record to the mail about it. Each mail has another channel. */
async function mail(count: number): Promise<Figure[]> {
  await using sink = await startSmtpSink();
  await using mesh = await startMesh({ env: { ...env, SMTP_URL: sink.url } });
  const [device] = await createDevices(mesh, 1);
  if (device === undefined) throw new Error("there is no device");
  await using connection = await connectMqttDevice({ url: mesh.mqttUrl, ...device });
  for (let nth = 0; nth <= count; nth++) {
    const to = [`nth-${nth}@example.com`];
    const channel = await create(mesh, "channels", { kind: "mail", name: "on call", to });
    const when = { kind: "value", topic: `t${nth}`, is: ">", than: 1 };
    await create(mesh, "rules", { name: `rule ${nth}`, when, notify: [channel] });
  }
  await sleep(3_000);
  const times: number[] = [];
  for (let nth = 0; nth <= count; nth++) {
    const began = performance.now();
    await connection.publish(`db/${device.id}/t${nth}`, "2", 1);
    await sink.awaitMail(({ to }) => to.includes(`nth-${nth}@example.com`));
    if (nth > 0) times.push((performance.now() - began) / 1_000);
    await sleep(300);
  }
  return [figure("from a record to its mail, s", times, 5)];
}

const measured = { rules, following, trial, silence, mail };
for (const [part, size] of Object.entries(parts)) {
  if (asked !== undefined && part !== asked) continue;
  const given = asked === undefined ? undefined : process.argv[3];
  reportFigures(await measured[part as keyof typeof parts](Number(given ?? size)));
}
