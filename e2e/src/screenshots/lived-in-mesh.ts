import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { SeriesFunction } from "@devmesh/contracts/model/series";
import { startFleet } from "@devmesh/simulator/fleet";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { asMaster } from "../tenant.ts";

/** A mesh with devices that have run for a while. */
export interface LivedInMesh extends AsyncDisposable {
  readonly mesh: TestMesh;
  /** A pump that is online. */
  readonly pump: string;
  /** A pump that is offline, and is to have another state. */
  readonly differing: string;
  /** Id of a job that waits for somebody to begin its last stage. */
  readonly job: string;
  /** Id of a job that brings devices to new firmware, and is under way. */
  readonly update: string;
  /** Id of a webhook that delivers. */
  readonly webhook: string;
  /** Id of a board with charts and values. */
  readonly board: string;
}

/** Devices of the calm fleet, and of one whose devices fail. */
const calm = { prefix: "unit", devices: 80 } as const;
const flaky = { prefix: "trial", devices: 6, faultSeed: 7 } as const;

/** Of the calm fleet: devices whose password was replaced, and which therefore do not come back. */
const lockedOut = ["unit-0007", "unit-0018"];

/** Starts a mesh with both fleets, keys, customers and calls, and lets it run. Stops all of it if `signal` fires. */
export async function startLivedInMesh(minutes: number, signal: AbortSignal): Promise<LivedInMesh> {
  const receiver = createServer((request, response) => {
    request.resume();
    request.on("end", () => response.writeHead(204).end());
  });
  await once(receiver.listen(0, "127.0.0.1"), "listening");
  const mesh = await startMesh();
  const access = { url: mesh.url, mqttUrl: mesh.mqttUrl, mqttTlsCert: undefined, masterKey: mesh.masterKey };
  const fleets = [startFleet(access, { ...calm, faultSeed: null }), startFleet(access, flaky)];
  const dispose = async () => {
    await Promise.all(fleets.map((fleet) => fleet.stop()));
    await mesh.stop();
    receiver.closeAllConnections();
    receiver.close();
  };
  try {
    await Promise.all(fleets.map(({ joined }) => joined));
    const [pump, differing] = ["unit-0001", "pump-spare"];
    await furnish(mesh, pump, differing);
    const { port } = receiver.address() as AddressInfo;
    const webhook = await watch(mesh, `http://127.0.0.1:${port}/devmesh`);
    const job = await startJob(mesh);
    const board = await createBoard(mesh, pump);
    const until = performance.now() + minutes * 60_000;
    for (let calls = 0; performance.now() < until; calls++) {
      await callSome(mesh, calls);
      await sleep(2_000, undefined, { signal });
    }
    const update = await startUpdate(mesh);
    return { mesh, pump, differing, job, update, webhook, board, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** What people do with a fleet: keys, customers, changes, and a token that is replaced. */
async function furnish(mesh: TestMesh, pump: string, differing: string): Promise<void> {
  const master = asMaster(mesh);
  await master.post("devices", {
    id: differing,
    name: "Spare pump, Graz",
    shadow: { tags: { labels: ["pump", "graz", "spare"] } },
  });
  await master.post(`devices/${differing}`, {
    shadow: {
      state: {
        desired: { app: { mode: "manual", target_bar: 4 } },
        reported: { app: { mode: "auto", target_bar: 3 }, ota: { fw_version: "1.9.8" } },
      },
    },
  });
  await master.post("keys", { name: "Night shift" });
  await master.post("keys", { name: "Tenant, ground floor", device_id: pump });
  for (const email of ["ann.moreau@example.com", "j.kowalska@example.com", "t.berg@example.com"])
    await master.get(`/newcustomer?email=${email}`);
  await master.post(`devices/${pump}`, { shadow: { state: { desired: { app: { target_bar: 3.5 } } } } });
  for (const id of lockedOut) await master.send("POST", `devices/${id}/token`);
}

/** Rules of each severity, their channels, and a silence. Returns the id of the webhook. */
async function watch(mesh: TestMesh, url: string): Promise<string> {
  const master = asMaster(mesh);
  const { json: webhook } = await master.post("webhooks", {
    url,
    name: "Service desk",
    events: ["online", "offline", "login_refused"],
  });
  const mail = { kind: "mail", name: "On call", to: ["duty@example.com"] };
  const chat = { kind: "webhook", name: "Service desk", webhook_id: webhook.id, format: "cloudevents" };
  const channels: string[] = [];
  for (const channel of [mail, chat]) channels.push((await master.post("channels", channel)).json.id);
  const [onCall = "", desk = ""] = channels;
  for (const rule of [
    {
      name: "Pump runs hot",
      severity: "critical",
      where: { labels: { all: ["pump"] } },
      when: { kind: "value", topic: "pump", pointer: "/motor", is: ">", than: 30, clear_at: 27 },
      notify: [onCall, desk],
      repeat: "PT4H",
      note: "See whether a tap is open.",
    },
    { name: "Device is away", when: { kind: "offline", longer_than: "PT1M" }, notify: [desk] },
    { name: "Setting not taken", severity: "info", when: { kind: "not_taken", longer_than: "PT1M" } },
    {
      name: "Logins are refused",
      when: { kind: "event", name: "login_refused", count: 3, within: "PT10M" },
      notify: [onCall],
    },
  ])
    await master.post("rules", rule);
  await master.post("silences", {
    where: { labels: { all: ["graz"] } },
    until: new Date(Date.now() + 8 * 3_600_000).toISOString(),
    note: "The site is rebuilt",
  });
  return webhook.id;
}

/** A board of the site: values of all devices of a kind, charts of some. Returns its id. */
async function createBoard(mesh: TestMesh, pump: string): Promise<string> {
  const master = asMaster(mesh);
  const some = async (label: string, count: number): Promise<string[]> =>
    (await master.get(`devices?where=label:${label}&limit=${count}`)).json.map(
      ({ id }: { id: string }) => id,
    );
  const range = "PT15M";
  const value = (title: string, topic: string, pointer: string, fn: SeriesFunction, x: number) => ({
    kind: "value",
    title,
    topic,
    pointer,
    fn,
    range,
    where: { labels: { all: [topic] } },
    x,
    y: 0,
    w: 3,
    h: 2,
  });
  const chart = (title: string, topic: string, pointer: string, device_ids: readonly string[]) => ({
    kind: "chart",
    title,
    topic,
    pointer,
    fn: "avg",
    range,
    device_ids,
  });
  const { json } = await master.post("boards", {
    name: "Cold chain, north",
    panels: [
      value("Warmest fridge", "fridge", "/temperature", "max", 0),
      value("Coldest fridge", "fridge", "/temperature", "min", 3),
      value("Motors", "pump", "/motor", "avg", 6),
      value("Strongest wind", "weather", "/wind", "max", 9),
      { ...chart("Fridges", "fridge", "/temperature", await some("fridge", 4)), x: 0, y: 2, w: 8, h: 4 },
      { ...chart("Pressure", "pump", "/pressure", [pump]), x: 8, y: 2, w: 4, h: 4 },
      { ...chart("Wind", "weather", "/wind", await some("weather", 3)), x: 0, y: 6, w: 6, h: 3 },
      { ...chart("Power of the pump", "pump", "/power", [pump]), x: 6, y: 6, w: 6, h: 3 },
    ],
  });
  return json.id;
}

/** A job in stages, and one that the flaky fleet fails. Returns the id of the first. */
async function startJob(mesh: TestMesh): Promise<string> {
  const master = asMaster(mesh);
  await master.post("jobs", {
    name: "Read what runs on trial",
    target: { where: { text: { all: [flaky.prefix] } } },
    action: { kind: "rpc", func: "Sys.GetInfo", timeout: 5_000 },
  });
  const { json } = await master.post("jobs", {
    name: "Read what runs",
    target: { where: {} },
    action: { kind: "rpc", func: "Sys.GetInfo", timeout: 5_000 },
    rollout: { stages: [{ percent: 10 }, { percent: 50, proceed_at: 80, hold: true }], per_minute: 600 },
    pause_at: { failed_percent: 40 },
  });
  return json.id;
}

/** Bytes of each file of firmware. */
const imageBytes = 600_000;

/** Uploads files of firmware, and brings the pumps to one of them; returns the job once devices have taken it. */
async function startUpdate(mesh: TestMesh): Promise<string> {
  const master = asMaster(mesh);
  const upload = async (name: string, version: string) => {
    const image = Buffer.alloc(imageBytes, name);
    image.write(`version=${version}\n`);
    const sha256 = createHash("sha256").update(image).digest("hex");
    const { json } = await master.post("firmware", {
      name,
      version,
      size: imageBytes,
      sha256,
      requires: { labels: { all: [name] } },
    });
    await master.post(`firmware/${json.id}/content`, image);
    return json.id as string;
  };
  await upload("fridge", "4.3.0");
  await upload("lamp", "3.2.0");
  const firmware_id = await upload("pump", "2.1.0");
  const { json } = await master.post("jobs", {
    name: "Pumps to 2.1.0",
    target: { where: { labels: { all: ["pump"] }, online: true } },
    action: { kind: "firmware", firmware_id, via: "url", stable: "PT20S" },
    rollout: { stages: [{ percent: 20 }, { percent: 50, proceed_at: 80 }], per_minute: 12 },
    pause_at: { failed_percent: 40 },
  });
  await eventually(async () => (await master.get(`jobs/${json.id}`)).json.counts.succeeded >= 2, {
    withinMs: 180_000,
    everyMs: 1_000,
  });
  return json.id;
}

/** A call of the calm fleet, and one of the flaky fleet, which may not be answered. */
async function callSome(mesh: TestMesh, nth: number): Promise<void> {
  const master = asMaster(mesh);
  const id = `${calm.prefix}-${String(1 + ((nth * 7) % calm.devices)).padStart(4, "0")}`;
  await master.get(`devices/${id}/rpc/Sys.GetInfo?timeout=2000`);
  if (nth % 5 === 0)
    await master.get(`devices/${flaky.prefix}-000${1 + (nth % 6)}/rpc/RPC.List?timeout=1000`);
}
