import { readdir, readFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { data } from "@devmesh/contracts/data";
import { deviceEvents, devices } from "@devmesh/contracts/devices";
import type { CloudEvent } from "@devmesh/contracts/model/cloud-event";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { columnsOf } from "@devmesh/contracts/model/record-columns";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import { calls } from "@devmesh/contracts/topology";
import { webhookEvents, webhooks } from "@devmesh/contracts/webhooks";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import {
  createEventOutbox,
  type EventOutbox,
  type OutboxMessage,
} from "@devmesh/service-kit/events/event-outbox";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { createLogger } from "@devmesh/service-kit/logger";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { meshUser } from "@devmesh/service-kit/subjects";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { parseStoreUrl } from "@devmesh/store/store-url";
import { startBroker } from "@devmesh/testkit/broker";
import { eventually } from "@devmesh/testkit/eventually";
import { fakeContract, fakeDevice } from "@devmesh/testkit/fakes";
import { startService } from "@devmesh/testkit/service-process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { Registry } from "prom-client";
import { storeDeadLetter } from "../src/deliveries/dead-letters.ts";
import { createCloudEvents, type WebhookDelivery } from "../src/deliveries/message.ts";
import { createUpkeep } from "../src/deliveries/upkeep.ts";
import { WebhooksEnv } from "../src/env.ts";
import { createWebhooksMetrics } from "../src/metrics.ts";
import { startWebhooks } from "../src/start-webhooks.ts";
import { changeStored } from "../src/store/change-stored.ts";
import { openMongoWebhookStore } from "../src/store/webhook-store.mongodb.ts";
import { openSqliteWebhookStore } from "../src/store/webhook-store.sqlite.ts";
import type { StoredWebhook, WebhookStore } from "../src/store/webhook-store.ts";

const webhookKey = Buffer.alloc(32, 1).fill(2, 16).toString("base64");

/** A request as a receiver took it. */
interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly at: number;
}

/** Answers a request; undefined answers 204. */
export type Answer = (request: ReceivedRequest, response: ServerResponse) => number | undefined;

/** Receivers of webhooks, one for each path. */
export async function startReceiver(port = 0) {
  const received: ReceivedRequest[] = [];
  const answers = new Map<string, Answer>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { url = "", headers } = request;
      const one = { path: url, headers, body: Buffer.concat(chunks).toString(), at: performance.now() };
      const status = answers.get(url)?.(one, response) ?? 204;
      // 0: the answer is left to the test.
      if (status === 0) return;
      if (status < 300) received.push(one);
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const own = (server.address() as AddressInfo).port;
  return {
    port: own,
    url: (path: string) => `http://127.0.0.1:${own}${path}`,
    answers,
    /** Requests that were answered with success. */
    received,
    eventsAt: (path: string): CloudEvent[] =>
      received.filter((one) => one.path === path).flatMap((one) => [JSON.parse(one.body)].flat()),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const call = () => createCallContext({ timeoutMs: 30_000 });

/** The reason of a call that fails. */
export const reasonOf = (answer: Promise<unknown>) =>
  answer.then(
    () => "answered",
    (error: unknown) => (error instanceof ServiceError ? error.reason : String(error)),
  );

/** A clock that differs from that of the broker for a while. */
class AheadClock extends ManualClock {
  aheadMs = 0;

  override now(): Date {
    return new Date(super.now().getTime() + this.aheadMs);
  }
}

/** The store of the service. */
async function openStore(storeUrl: string): Promise<WebhookStore> {
  const url = parseStoreUrl(storeUrl);
  if (url.kind === "sqlite") return openSqliteWebhookStore(url.path);
  return await openMongoWebhookStore(url, AbortSignal.timeout(10_000));
}

/** All files below a folder, as text. */
async function contentsOf(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const read = files.map(({ parentPath, name }) => readFile(join(parentPath, name), "latin1"));
  return (await Promise.all(read)).join("\n");
}

/** A broker with fakes of `devices` and `data`, and processes of the service over one store. */
export async function openWebhooks(storeUrl?: string) {
  const broker = await startBroker();
  const folder = await tempFolder();
  const connect = (service: string): Promise<Bus> =>
    connectBus({
      url: broker.url,
      user: meshUser(service),
      password: broker.passwords[service] ?? "",
      name: service,
      log: createLogger({ service, level: "silent" }),
    });
  const [ofDevices, ofData, ofBridge, ofGateway] = await Promise.all(
    ["devices", "data", "rpc-bridge", "gateway"].map(connect),
  );
  if (!ofDevices || !ofData || !ofBridge || !ofGateway) throw new Error("unreachable");
  const labels = new Map<string, readonly string[]>();
  const records: DataRecord[] = [];
  const followed = new Set<string>();
  serve(
    ofDevices,
    devices,
    fakeContract(devices, {
      async readDevice({ id }, context) {
        const own = labels.get(id) ?? context.fail("device_not_found");
        const device = fakeDevice(id, {});
        return {
          etag: "1",
          device: { ...device, shadow: { ...device.shadow, tags: { labels: [...own] } } } as never,
        };
      },
    }),
  );
  serve(
    ofData,
    data,
    fakeContract(data, {
      async followRecords({ after, device_ids, limit }) {
        const last = String(records.at(-1)?.id ?? 0);
        if (after !== null) followed.add(device_ids?.join() ?? "all");
        if (after === null)
          return { next: last, caught_up_at: new Date().toISOString(), records: columnsOf([]) };
        const found = records
          .filter(({ id }) => id > Number(after))
          .filter(({ device_id }) => device_ids?.includes(device_id) ?? true);
        const page = found.slice(0, limit);
        const isWhole = page.length === found.length;
        const next = isWhole ? last : String(page.at(-1)?.id);
        return { next, caught_up_at: isWhole ? new Date().toISOString() : null, records: columnsOf(page) };
      },
    }),
  );
  await Promise.all([ofDevices.flush(), ofData.flush()]);
  const client = createClient(
    ofGateway,
    calls(webhooks, Object.keys(webhooks.methods) as (keyof typeof webhooks.methods)[]),
  );
  const ownEnvironment = {
    NATS_URL: broker.url,
    STORE_URL: storeUrl ?? `sqlite:${join(folder.path, "webhooks.db")}`,
    OPS_PORT: "0",
    PUBLIC_URL: "https://mesh.example.com/",
    WEBHOOK_KEY: webhookKey,
    WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8",
  };
  const ofWebhooks = await connect("webhooks");
  const outbox = createEventOutbox(ofWebhooks, {}, { maxBytes: 1024 ** 3 });
  const cloudEvents = createCloudEvents("https://mesh.example.com/api/v2");
  async function withStore<T>(use: (store: WebhookStore) => Promise<T>): Promise<T> {
    const store = await openStore(ownEnvironment.STORE_URL);
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  }
  const upkeepOver = (store: WebhookStore, ofReplica: EventOutbox) =>
    createUpkeep({
      store,
      outbox: ofReplica,
      events: cloudEvents,
      metrics: createWebhooksMetrics(new Registry(), outbox, store),
      clock: new AheadClock(new Date()),
      log: ofWebhooks.log,
    });
  return {
    broker,
    client,
    outbox,
    /** Whose records were read after a cursor: ids of devices, or `all`. */
    followed,
    /** Queues an event as `deliver` does. */
    queueFor(id: string, more: Pick<WebhookDelivery, "format" | "text">) {
      const time = new Date().toISOString();
      const event = cloudEvents.of({ id: "alert-1", type: "devmesh.alert", subject: "pump", time, data: {} });
      return outbox.publish(id, JSON.stringify({ event, ...more }), "alert-1");
    },
    /** Stores dead letters of a webhook, about these devices. */
    async buryFor(id: string, subjects: readonly string[], storedAt = new Date()) {
      for (const subject of subjects) {
        const time = new Date().toISOString();
        const event = cloudEvents.of({ id: `x-${subject}`, type: "devmesh.online", subject, time, data: {} });
        await storeDeadLetter(
          outbox,
          { id },
          {
            delivery: { event, format: "cloudevents" },
            outcome: { status: 500, error: "status 500", retryAfterMs: null },
            message: { deliveries: 32, storedAt } as OutboxMessage,
          },
        );
      }
    },
    /** Cuts a webhook so many times, one cut begun before the last has ended. Resolves to what the broker has of it. */
    cutOften: (id: string, times: number) =>
      withStore(async (store) => {
        const { cut } = upkeepOver(store, outbox);
        const signal = AbortSignal.timeout(60_000);
        const cuts: Promise<void>[] = [];
        let run = -1;
        while (cuts.length < times) {
          const row = await store.find(id, signal);
          if (row === null) throw new Error("the webhook is gone");
          if (row.run === run) continue;
          run = row.run;
          cuts.push(cut(row, Date.now(), signal));
        }
        await Promise.all(cuts);
        return { row: await store.find(id, signal), found: (await outbox.consumers()).get(id) };
      }),
    /** Cuts a webhook after another replica listed its consumer and before that one compares it with the row. */
    cutWithinRound: (id: string) =>
      withStore(async (store) => {
        const signal = AbortSignal.timeout(60_000);
        const replica = upkeepOver(store, outbox);
        const other = upkeepOver(store, {
          ...outbox,
          async consumers() {
            const listed = await outbox.consumers();
            const row = await store.find(id, signal);
            if (row !== null) await replica.cut(row, Date.now(), signal);
            return listed;
          },
        });
        await other.run(signal);
      }),
    /** Cuts a webhook while another replica changes its events. Resolves to 1 if its consumer has the change. */
    cutBesideEdit: (id: string) =>
      withStore(async (store) => {
        const signal = AbortSignal.timeout(60_000);
        const row = await store.find(id, signal);
        if (row === null) throw new Error("the webhook is gone");
        const editing = upkeepOver(store, outbox);
        const replica = upkeepOver(store, {
          ...outbox,
          async publish(...message) {
            const { edition } = row;
            const edit = (now: StoredWebhook) =>
              now.edition === edition ? { ...now, edition: edition + 1, events: ["online" as const] } : null;
            const edited = await changeStored(store, id, edit, signal);
            if (edited !== null) await editing.change(edited);
            await outbox.publish(...message);
          },
        });
        await replica.cut(row, Date.now(), signal);
        return ((await outbox.consumers()).get(id)?.revision ?? 0) - row.edition;
      }),
    /** Cuts a webhook whose consumer another replica makes again meanwhile, which dies before it publishes the gap. */
    cutBesideDeath: (id: string) =>
      withStore(async (store) => {
        const signal = AbortSignal.timeout(60_000);
        const row = await store.find(id, signal);
        if (row === null) throw new Error("the webhook is gone");
        let isDead = false;
        const replica = upkeepOver(store, {
          ...outbox,
          async put(wanted, gapFrom) {
            if (gapFrom === null && !isDead) {
              isDead = true;
              await outbox.remove(id);
              await outbox.put(wanted, new Date().toISOString());
            }
            return await outbox.put(wanted, gapFrom);
          },
        });
        await replica.cut(row, Date.now(), signal);
      }),
    /** What the broker and the store of the service hold, as text. */
    async atRest(): Promise<string> {
      const contents = await Promise.all([broker.storeDir, folder.path].map(contentsOf));
      if (storeUrl === undefined) return contents.join("\n");
      const rows = await withStore((store) => store.list(AbortSignal.timeout(10_000)));
      return [...contents, JSON.stringify(rows)].join("\n");
    },
    /** Number of events that wait for a webhook, those that are being delivered included. */
    waitingFor: async (id: string) => (await outbox.consumers()).get(id)?.waiting,
    labels,
    records,
    ofDevicesClient: createClient(ofDevices, calls(webhooks, ["purgeDevice"])),
    deviceEvents: await createPublisher(ofDevices, deviceEvents),
    rpcEvents: await createPublisher(ofBridge, rpcEvents),
    start: (env: Record<string, string> = {}) =>
      startService("webhooks", { ...broker.environmentOf("webhooks"), ...ownEnvironment, ...env }),
    /** Stores a webhook while no service runs. */
    insert: (webhook: StoredWebhook) =>
      withStore((store) => store.insert(webhook, 50, AbortSignal.timeout(10_000))),
    /** Starts the service in this process, with a clock that the test moves, and that is ahead by so much. */
    async startWithClock(env: Record<string, string> = {}, aheadMs = 0) {
      const clock = new AheadClock(new Date());
      clock.aheadMs = aheadMs;
      const bus = await connect("webhooks");
      const stop = await startHere(bus, clock, { ...ownEnvironment, ...env });
      return {
        clock,
        /** The value of a metric without labels. */
        async metric(name: string): Promise<number> {
          const [line] = (await bus.metrics.registry.getSingleMetricAsString(name)).split("\n").slice(2);
          return Number(line?.split(" ")[1] ?? 0);
        },
        /** Moves the clock on, a step at a time, until the check holds. */
        until: <T>(check: () => T | Promise<T>, stepMs = 250) =>
          eventually(async () => {
            await clock.advance(stepMs);
            return await check();
          }),
        [Symbol.asyncDispose]: stop,
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([ofDevices, ofData, ofBridge, ofGateway, ofWebhooks].map((bus) => bus.close()));
      await broker.stop();
      await folder.remove();
    },
  };
}

/** Starts the service on a connection, and serves its contract. Returns how to stop it, and close the connection. */
async function startHere(bus: Bus, clock: Clock, env: Record<string, string>): Promise<() => Promise<void>> {
  const stopping = new AbortController();
  const started = await startWebhooks({
    env: WebhooksEnv.parse(env),
    bus,
    connectAs: () => Promise.reject(new Error("it has one connection")),
    publisher: await createPublisher(bus, webhookEvents),
    clients: {
      devices: createClient(bus, calls(devices, ["readDevice"])),
      data: createClient(bus, calls(data, ["followRecords"])),
    },
    log: bus.log,
    clock,
    metrics: bus.metrics,
    signal: stopping.signal,
    ready: () => undefined,
    onLauncherMessage: () => undefined,
  });
  const served = serve(bus, webhooks, started.implementation);
  await bus.flush();
  return async () => {
    await served.drain(1_000);
    stopping.abort();
    await started.stop?.();
    await started.close?.();
    await bus.close();
  };
}

export type WebhooksFixture = Awaited<ReturnType<typeof openWebhooks>>;
