import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type HttpAnswer, type HttpClient, httpClient } from "@devmesh/testkit/http";
import { LoadCount, type LoadFigures, type RequestOutcome } from "./load-count.ts";
import { LoadDevice } from "./load-device.ts";
import type { ClusterAccess } from "./mesh-access.ts";

/** Devices that are called and publish. */
const DEVICES = 5;

/** Longest time until an acknowledged message is stored, in milliseconds; after an election it takes seconds. */
const STORED_MS = 60_000;

/** Longest time of an answer `device_offline`, in milliseconds: a device that moves has two seconds to return. */
const OFFLINE_MS = 3_000;

/** A device may notice the end of its connection that much later than the mesh, in milliseconds. */
const NOTICED_MS = 1_000;

/** What a period under load did to requests, and to devices that publish at QoS 1. */
export interface CountedPeriod {
  readonly requests: LoadFigures;
  readonly messages: LoadFigures;
  /** Connections that devices made again. */
  readonly logins: number;
}

/** Requests of eight kinds at a constant rate, and five devices, which are deleted at the end. */
export interface Load extends AsyncDisposable {
  /** Counts what begins while `work` runs. */
  count(work: () => Promise<void>): Promise<CountedPeriod>;
  /** Ends it; resolves with what was acknowledged and is not stored, a line each. */
  stop(): Promise<readonly string[]>;
}

/** A failed request: its kind, the cause, when it began and how long it took. */
export type ReportFailure = (line: string) => void;

/**
 * Starts the load; resolves when the devices are connected. Requests are sent whether or not earlier ones are
 * answered, and never a second time.
 */
export async function startLoad(
  mesh: ClusterAccess,
  requestsPerSecond: number,
  report: ReportFailure,
): Promise<Load> {
  const master = httpClient(`${mesh.url}/api/v2`, mesh.masterKey);
  const devices: LoadDevice[] = [];
  const deviceKeys = new Map<LoadDevice, HttpClient>();
  const prefix = `load-${randomBytes(6).toString("hex")}`;
  for (let number = 0; number < DEVICES; number++) {
    const id = `${prefix}-${number}`;
    const { token } = expectCreated(await master("/devices", { body: { id } }));
    const { key } = expectCreated(await master("/keys", { body: { device_id: id } }));
    const device = new LoadDevice({ url: mesh.mqttUrl, id, token });
    devices.push(device);
    deviceKeys.set(device, master.as(key));
  }
  const kinds = requestKinds(master, deviceKeys);
  const names = [...kinds.keys()];
  const counts = { requests: new LoadCount(names), messages: new LoadCount([publishing]) };
  const running = devices.map((device) => device.run((sent) => counts.messages.add(publishing, sent)));
  await Promise.all(devices.map((device) => device.connected()));

  let turn = 0;
  const timer = setInterval(() => {
    const number = turn++;
    const name = names[number % names.length] ?? "";
    const device = devices[Math.floor(number / names.length) % devices.length];
    const send = kinds.get(name);
    if (device === undefined || send === undefined) return;
    counts.requests.add(name, reported(name, send(device, number), report));
  }, 1_000 / requestsPerSecond);
  const logins = () => devices.reduce((sum, device) => sum + device.logins, 0);
  const end = async () => {
    clearInterval(timer);
    await counts.requests.end();
    for (const device of devices) device.stop();
    await Promise.all(running);
  };

  return {
    async count(work) {
      counts.requests = new LoadCount(names);
      counts.messages = new LoadCount([publishing]);
      const before = logins();
      await work();
      const ended = Promise.all([counts.requests.end(), counts.messages.end()]);
      counts.requests = new LoadCount(names);
      counts.messages = new LoadCount([publishing]);
      const [requests, messages] = await ended;
      return { requests, messages, logins: logins() - before };
    },
    async stop() {
      await end();
      const lost: string[] = [];
      for (const device of devices) lost.push(...(await lostOf(master, device)));
      return lost;
    },
    async [Symbol.asyncDispose]() {
      await end();
      for (const { id } of devices) await master(`/devices/${id}`, { method: "DELETE" });
    },
  };
}

const publishing = "publish at QoS 1";

type Send = (device: LoadDevice, turn: number) => Promise<RequestOutcome>;

function requestKinds(
  master: HttpClient,
  deviceKeys: ReadonlyMap<LoadDevice, HttpClient>,
): ReadonlyMap<string, Send> {
  return new Map<string, Send>([
    ["read a device", ({ id }) => outcomeOf(master(`/devices/${id}`))],
    ["call a device", (device, turn) => call(master, device, turn)],
    ["read records", ({ id }) => outcomeOf(master(`/data?limit=10&skip=-10&device_id=${id}`))],
    ["change a shadow", (device, turn) => changeShadow(master, device, turn)],
    ["list keys", () => outcomeOf(master("/keys?limit=10"))],
    ["list devices", () => outcomeOf(master("/devices?limit=10"))],
    ["make and revoke a key", ({ id }, turn) => makeKey(master, id, turn)],
    ["read with a device key", (device) => outcomeOf((deviceKeys.get(device) ?? master)("/device"))],
  ]);
}

/** A device without a connection at any moment of the call is answered 409 at once, and that is no failure. */
async function call(master: HttpClient, device: LoadDevice, turn: number): Promise<RequestOutcome> {
  const { connection } = device;
  const begunMs = performance.now();
  const outcome = await outcomeOf(master(`/devices/${device.id}/rpc/Echo`, { body: { turn } }));
  if (typeof outcome === "string" || outcome.failed !== "409 device_offline") return outcome;
  if (performance.now() - begunMs > OFFLINE_MS) return { failed: "409 device_offline, late" };
  if (connection === null) return "offline";
  await sleep(NOTICED_MS);
  const stayed = device.connection === connection;
  return stayed ? { failed: "409 device_offline of a connected device" } : "offline";
}

async function changeShadow(master: HttpClient, device: LoadDevice, turn: number): Promise<RequestOutcome> {
  const change = { shadow: { state: { desired: { turn } } } };
  return await outcomeOf(master(`/devices/${device.id}`, { body: change }), 200, ({ shadow }) => {
    device.changes++;
    device.versions.add(shadow.version);
  });
}

/** Two requests: a key that nobody revokes is not left. */
async function makeKey(master: HttpClient, device: string, turn: number): Promise<RequestOutcome> {
  let id = "";
  const body = { device_id: device, name: `load ${turn}` };
  const made = await outcomeOf(master("/keys", { body }), 201, (key) => {
    id = key.id;
  });
  return made === "done" ? await outcomeOf(master(`/keys/${id}`, { method: "DELETE" }), 204) : made;
}

async function outcomeOf(
  answer: Promise<HttpAnswer>,
  expected = 200,
  take: (body: HttpAnswer["json"]) => void = () => undefined,
): Promise<RequestOutcome> {
  try {
    const { status, json } = await answer;
    if (status !== expected) return { failed: `${status} ${json?.reason ?? ""}` };
    take(json);
    return "done";
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return { failed: cause instanceof Error && "code" in cause ? String(cause.code) : String(cause) };
  }
}

async function reported(
  kind: string,
  request: Promise<RequestOutcome>,
  report: ReportFailure,
): Promise<RequestOutcome> {
  const begun = new Date();
  const outcome = await request;
  if (typeof outcome === "object") {
    const seconds = ((Date.now() - begun.getTime()) / 1_000).toFixed(1);
    report(`${begun.toISOString()}  ${kind}: ${outcome.failed} after ${seconds} s`);
  }
  return outcome;
}

/** What a device's messages and changes of its shadow have lost within {@link STORED_MS}. */
async function lostOf(master: HttpClient, device: LoadDevice): Promise<readonly string[]> {
  const { id, acknowledged, versions, changes } = device;
  const missing = new Set(acknowledged);
  const end = performance.now() + STORED_MS;
  while (missing.size > 0 && performance.now() < end) {
    const { text } = await master(`/data?filter=db/${id}/count`, {
      headers: { accept: "application/x-ndjson" },
    });
    for (const line of text.split("\n")) if (line !== "") missing.delete(Number(JSON.parse(line).message));
    if (missing.size > 0) await sleep(1_000);
  }
  const lost = missing.size > 0 ? [`${missing.size} of ${acknowledged.size} messages of ${id}`] : [];
  const { json } = await master(`/devices/${id}`);
  // Each change steps the version by one: a version given twice, or beyond the present one, is of a lost change.
  const stored = [...versions].filter((version) => version <= json?.shadow?.version).length;
  if (stored < changes) lost.push(`${changes - stored} of ${changes} changes of the shadow of ${id}`);
  return lost;
}

function expectCreated({ status, text, json }: HttpAnswer): HttpAnswer["json"] {
  if (status !== 201) throw new Error(`${status}: ${text}`);
  return json;
}
