import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { DeviceLogin } from "@devmesh/simulator/device-connection";
import { type HttpAnswer, type HttpClient, httpClient } from "@devmesh/testkit/http";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { LoadCount, type LoadFigures, type Outcome } from "./load-count.ts";
import type { MeshAccess } from "./mesh-access.ts";

/** Pauses of the device between two messages, and between two logins after a refused one, in milliseconds. */
const PUBLISH_MS = 100;
const LOGIN_MS = 200;

/** Longest time until an acknowledged message is stored, in milliseconds; after an election it takes seconds. */
const STORED_MS = 60_000;

/** What a period under load did to requests, and to a device that publishes at QoS 1. */
export interface CountedPeriod {
  readonly requests: LoadFigures;
  readonly messages: LoadFigures;
  /** Connections that the device made anew. */
  readonly logins: number;
}

/** Requests of five kinds at a constant rate, and one device. */
export interface Load {
  /** Counts what begins while `work` runs. */
  count(work: () => Promise<void>): Promise<CountedPeriod>;
  /** Ends it and deletes the device; resolves with the messages that were acknowledged and are not stored. */
  stop(): Promise<number>;
}

/**
 * Starts the load; resolves when the device is connected. Requests are sent whether or not earlier ones are
 * answered.
 */
export async function startLoad(mesh: MeshAccess, requestsPerSecond: number): Promise<Load> {
  const master = httpClient(`${mesh.url}/api/v2`, mesh.masterKey);
  const id = `load-${randomBytes(6).toString("hex")}`;
  const created = await master("/devices", { body: { id } });
  if (created.status !== 201) throw new Error(`${created.status}: ${created.text}`);
  const device = new LoadDevice({ url: mesh.mqttUrl, id, token: created.json.token });
  const kinds = requestKinds(master, id, device);
  const names = [...kinds.keys()];
  const counts = { requests: new LoadCount(names), messages: new LoadCount([publishing]) };
  const running = device.run((request) => counts.messages.add(publishing, request));
  await device.connected();

  let turn = 0;
  const timer = setInterval(() => {
    const name = names[turn++ % names.length] ?? "";
    counts.requests.add(name, kinds.get(name)?.(turn) ?? Promise.resolve("excused"));
  }, 1_000 / requestsPerSecond);

  return {
    async count(work) {
      counts.requests = new LoadCount(names);
      counts.messages = new LoadCount([publishing]);
      const before = device.logins;
      await work();
      const ended = Promise.all([counts.requests.end(), counts.messages.end()]);
      counts.requests = new LoadCount(names);
      counts.messages = new LoadCount([publishing]);
      const [requests, messages] = await ended;
      return { requests, messages, logins: device.logins - before };
    },
    async stop() {
      clearInterval(timer);
      await counts.requests.end();
      device.stop();
      await running;
      const lost = await lostMessages(master, id, device.acknowledged);
      await master(`/devices/${id}`, { method: "DELETE" });
      return lost;
    },
  };
}

const publishing = "publish at QoS 1";

type Send = (turn: number) => Promise<Outcome>;

function requestKinds(master: HttpClient, id: string, device: LoadDevice): ReadonlyMap<string, Send> {
  return new Map<string, Send>([
    ["read a device", () => outcomeOf(master(`/devices/${id}`))],
    [
      "change a shadow",
      (turn) => outcomeOf(master(`/devices/${id}`, { body: { shadow: { state: { desired: { turn } } } } })),
    ],
    ["read records", () => outcomeOf(master("/data?limit=10&skip=-10"))],
    ["list keys", () => outcomeOf(master("/keys?limit=10"))],
    [
      "call the device",
      async (turn) => {
        const { logins, isConnected } = device;
        const outcome = await outcomeOf(master(`/devices/${id}/rpc/Echo`, { body: { turn } }));
        const stayed = isConnected && device.isConnected && device.logins === logins;
        return outcome === "done" || stayed ? outcome : "excused";
      },
    ],
  ]);
}

async function outcomeOf(answer: Promise<HttpAnswer>): Promise<Outcome> {
  try {
    const { status, json } = await answer;
    return status === 200 ? "done" : { failed: `${status} ${json?.reason ?? ""}` };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return { failed: cause instanceof Error && "code" in cause ? String(cause.code) : String(cause) };
  }
}

/** Acknowledged messages that are not stored within {@link STORED_MS}. */
async function lostMessages(
  master: HttpClient,
  id: string,
  acknowledged: ReadonlySet<number>,
): Promise<number> {
  const missing = new Set(acknowledged);
  const end = performance.now() + STORED_MS;
  while (missing.size > 0 && performance.now() < end) {
    await sleep(1_000);
    const { text } = await master(`/data?filter=db/${id}/count`, {
      headers: { accept: "application/x-ndjson" },
    });
    for (const line of text.split("\n")) if (line !== "") missing.delete(Number(JSON.parse(line).message));
  }
  return missing.size;
}

/** A device that echoes calls, publishes numbers at QoS 1, and logs in again whenever its connection is lost. */
class LoadDevice {
  readonly acknowledged = new Set<number>();
  logins = 0;
  /** Whether it is connected and subscribed to calls. */
  isConnected = false;
  readonly #login: DeviceLogin;
  readonly #first = Promise.withResolvers<void>();
  #next = 0;
  #stopped = false;

  constructor(login: DeviceLogin) {
    this.#login = login;
  }

  connected(): Promise<void> {
    return this.#first.promise;
  }

  stop(): void {
    this.#stopped = true;
  }

  async run(count: (request: Promise<Outcome>) => void): Promise<void> {
    const urls = this.#login.url.split(",");
    for (let turn = 0; !this.#stopped; ) {
      const url = urls[turn++ % urls.length] ?? "";
      // The certificate may be renewed meanwhile; the smoke has checked it.
      const device = await connectMqttDevice({ ...this.#login, url }, { rejectUnauthorized: false }).catch(
        () => null,
      );
      if (device === null) {
        await sleep(LOGIN_MS);
        continue;
      }
      this.logins++;
      await this.#publish(device, count);
      this.isConnected = false;
      await device[Symbol.asyncDispose]();
    }
  }

  async #publish(device: MqttDevice, count: (request: Promise<Outcome>) => void): Promise<void> {
    const closed = device.closed();
    const answering = device.answerRpc(({ params }) => ({ result: params ?? null }));
    try {
      await Promise.race([answering, closed]);
    } catch {
      return;
    }
    this.isConnected = device.client.connected;
    this.#first.resolve();
    void closed.then(() => {
      this.isConnected = false;
    });
    while (!this.#stopped && device.client.connected) {
      const number = this.#next++;
      const acknowledged = device.publish(`db/${this.#login.id}/count`, String(number), 1).then(
        (): Outcome => {
          this.acknowledged.add(number);
          return "done";
        },
        (): Outcome => ({ failed: "not sent" }),
      );
      const cut = closed.then((): Outcome => ({ failed: "connection lost before the acknowledgement" }));
      count(Promise.race([acknowledged, cut]));
      await sleep(PUBLISH_MS);
    }
  }
}
