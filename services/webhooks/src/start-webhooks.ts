import { randomUUID } from "node:crypto";
import { alertEvents } from "@devmesh/contracts/alerts";
import { deviceEvents } from "@devmesh/contracts/devices";
import { jobEvents } from "@devmesh/contracts/jobs";
import { keyEvents } from "@devmesh/contracts/keys";
import type { mesh } from "@devmesh/contracts/mesh";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import { webhookEvents } from "@devmesh/contracts/webhooks";
import { createEventOutbox } from "@devmesh/service-kit/events/event-outbox";
import type { StartService } from "@devmesh/service-kit/process/run-service";
import { repeat } from "@devmesh/service-kit/retry";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import { mapStoreErrors } from "@devmesh/service-kit/rpc/map-store-errors";
import { createIdSource } from "@devmesh/service-kit/sortable-id";
import { traceStore } from "@devmesh/service-kit/tracing/trace-store";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { openStore, parseStoreUrl } from "@devmesh/store/store-url";
import { createAttempt, createSignedSend } from "./deliveries/attempts.ts";
import { Deliveries } from "./deliveries/deliveries.ts";
import { createLabelReader } from "./deliveries/device-labels.ts";
import { Health } from "./deliveries/health.ts";
import { createCloudEvents } from "./deliveries/message.ts";
import { createUpkeep } from "./deliveries/upkeep.ts";
import type { WebhooksEnv } from "./env.ts";
import { createWebhooksMetrics } from "./metrics.ts";
import { RecordDeliveries } from "./records/records.ts";
import { createGuard } from "./requests/guard.ts";
import { createSender } from "./requests/sender.ts";
import { createSecrets } from "./requests/signature.ts";
import { changeStored } from "./store/change-stored.ts";
import { openSqliteWebhookStore } from "./store/webhook-store.sqlite.ts";
import type { StoredWebhook, WebhookStore } from "./store/webhook-store.ts";
import { createWebhooks } from "./webhooks.ts";

const readinessTimeoutMs = 1_000;
/** How often the broker is made as the rows say, and what became of requests is stored; in milliseconds. */
const upkeepMs = 30_000;
const flushMs = 1_000;
const storeMs = 10_000;
/** How long the end of the records may take when a webhook begins; then its first reading finds it. */
const endMs = 3_000;
/** How long a stop waits for receivers; their events are sent again by another replica or the next process. */
const receiversMs = 2_000;

/** Opens the store, and delivers. */
export const startWebhooks: StartService<typeof mesh.webhooks, WebhooksEnv> = async (parts) => {
  const { env, bus, clients, publisher, log, clock, metrics: kit, signal } = parts;
  const system = parseStoreUrl(env.STORE_URL).kind;
  const opened = await openWebhookStore(env.STORE_URL, signal);
  const store = traceStore(bus.tracer, opened, { system, collection: "webhooks" });
  const declared = [deviceEvents, rpcEvents, jobEvents, keyEvents, alertEvents, webhookEvents];
  const eventsByService = Object.fromEntries(declared.map(({ service, events }) => [service, events]));
  const outbox = createEventOutbox(bus, eventsByService, { maxBytes: env.WEBHOOK_QUEUE_BYTES });
  await outbox.ensure();
  const guard = createGuard({
    allowed: env.WEBHOOK_ALLOW_NETWORKS,
    ownUrls: [env.PUBLIC_URL],
    ownListeners: env.GATEWAY_URLS,
  });
  const secrets = createSecrets(env.WEBHOOK_KEY);
  const sender = createSender({ guard, clock });
  const events = createCloudEvents(`${env.PUBLIC_URL.replace(/\/+$/, "")}/api/v2`);
  const metrics = createWebhooksMetrics(kit.registry, outbox, store);
  const upkeep = createUpkeep({ store, outbox, events, metrics, clock, log });
  const readLabels = createLabelReader(clients.devices, clock);

  async function onDisabled({ id, disabled_because }: StoredWebhook): Promise<void> {
    log.warn({ webhook: id, why: disabled_because }, "a webhook was disabled");
    await outbox.remove(id);
    await publisher.webhook_changed({ id, timestamp: clock.now().toISOString(), change: "disabled" });
  }
  async function onGone({ id, url }: StoredWebhook): Promise<void> {
    const disabled = await changeStored(
      store,
      id,
      (row) =>
        row.disabled_because === null && row.url === url ? { ...row, disabled_because: "gone" } : null,
      AbortSignal.timeout(storeMs),
    );
    if (disabled !== null) await onDisabled(disabled);
  }

  async function endOfRecords({ trace, signal }: CallContext): Promise<string | null> {
    using call = createCallContext({ timeoutMs: endMs, trace, signal, clock });
    const read = await clients.data.followRecords({ after: null }, call).catch(() => null);
    return read?.next ?? null;
  }

  const health = new Health({ store, onDisabled });
  const signing = { sender, secrets, clock };
  const ending = new AbortController();
  const attempt = createAttempt({ ...signing, health, metrics, signal: ending.signal });
  const common = { store, outbox, attempt, readLabels, events, onGone, clock, log };
  const deliveries = new Deliveries({
    ...common,
    birth: () => upkeep.birth,
    onGapTold: upkeep.told,
    cut: (webhook, from) => upkeep.cut(webhook, from, AbortSignal.timeout(storeMs)),
    metrics,
  });
  const holder = randomUUID();
  const records = new RecordDeliveries({ ...common, data: clients.data, holder });

  const life = new AbortController();
  const running = AbortSignal.any([signal, life.signal]);
  let rounds: Promise<void> = Promise.resolve();
  async function round(): Promise<void> {
    if (running.aborted) return;
    await store.correctCounts(running);
    const enabled = await upkeep.run(running);
    const webhooks = await store.list(running);
    const withRecords = webhooks.filter(({ id, events: names }) => enabled.has(id) && names.includes("data"));
    if (running.aborted) return;
    deliveries.deliverFor(enabled);
    records.followFor(new Set(withRecords.map(({ id }) => id)));
  }
  /** One round at a time. */
  const next = (): Promise<void> => {
    rounds = rounds.catch(() => undefined).then(round);
    return rounds;
  };
  const onFailure = (err: unknown) => log.warn({ err }, "webhooks are not kept up and are tried again");
  const repeated = Promise.all([
    repeat(next, { everyMs: upkeepMs, onFailure, clock, signal: running }),
    repeat(() => health.flush(clock.now().getTime(), AbortSignal.timeout(storeMs)), {
      everyMs: flushMs,
      onFailure,
      clock,
      signal: running,
    }),
  ]);

  return {
    implementation: mapStoreErrors(
      createWebhooks({
        store,
        outbox,
        upkeep,
        guard,
        secrets,
        send: createSignedSend(signing),
        events,
        endOfRecords,
        publisher,
        reveal: env.KEYS_REVEAL === "always",
        onChanged: () => void next().catch(onFailure),
        newId: createIdSource(clock),
        clock,
      }),
      isStoreUnavailable,
    ),
    ready: () => opened.ping(AbortSignal.timeout(readinessTimeoutMs)),
    async stop() {
      life.abort(new Error("the service stops"));
      await repeated;
      await rounds.catch(() => undefined);
      const timer = setTimeout(() => ending.abort(new Error("the service stops")), receiversMs);
      await Promise.all([deliveries.stop(), records.stop()]);
      clearTimeout(timer);
      await health.flush(clock.now().getTime(), AbortSignal.timeout(readinessTimeoutMs)).catch(onFailure);
      sender.close();
    },
    close: () => opened.close(),
  };
};

function openWebhookStore(storeUrl: string, signal: AbortSignal): Promise<WebhookStore> {
  const mongodb = async () => (await import("./store/webhook-store.mongodb.ts")).openMongoWebhookStore;
  return openStore(parseStoreUrl(storeUrl), { sqlite: openSqliteWebhookStore, mongodb }, signal);
}
