import { randomUUID } from "node:crypto";
import { alertMailQueue } from "@devmesh/contracts/mailer";
import type { mesh } from "@devmesh/contracts/mesh";
import { followEvents, replayEvents } from "@devmesh/service-kit/events/event-stream";
import { createLeadership } from "@devmesh/service-kit/leadership";
import { metricsOn } from "@devmesh/service-kit/metrics";
import type { StartService } from "@devmesh/service-kit/process/run-service";
import { createProducer } from "@devmesh/service-kit/queue/producer";
import { repeat } from "@devmesh/service-kit/retry";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import { mapStoreErrors } from "@devmesh/service-kit/rpc/map-store-errors";
import { createIdSource } from "@devmesh/service-kit/sortable-id";
import { traceStore } from "@devmesh/service-kit/tracing/trace-store";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { openStore, parseStoreUrl } from "@devmesh/store/store-url";
import { createAlerts, testWindowMs } from "./alerts.ts";
import { describeAlert } from "./describe.ts";
import type { AlertsEnv } from "./env.ts";
import type { EventSource } from "./evaluation/device-feed.ts";
import { createEvaluation, graceMs } from "./evaluation/evaluation.ts";
import { createChannelSender } from "./notifying/channel-sender.ts";
import { createNotifier } from "./notifying/notifier.ts";
import { StaleChange, type StoredAlert } from "./store/alert-store.ts";
import { openSqliteAlertsStore } from "./store/alerts-store.sqlite.ts";
import type { AlertsStore } from "./store/alerts-store.ts";
import { createRuleReader } from "./store/read-on-change.ts";

/** How often rules are evaluated, people notified and old alerts removed, in milliseconds. */
const evaluateEveryMs = 1_000;
const notifyEveryMs = 1_000;
const removeEveryMs = 60_000;

/** Alerts are kept for 90 days after they cleared. */
const keptMs = 90 * 24 * 3_600_000;
const batchSize = 1_000;

/** Silences are kept for 7 days after they ended. */
const silenceKeptMs = 7 * 24 * 3_600_000;

const readinessTimeoutMs = 1_000;

/** Opens the store, and evaluates when it is this replica's turn. */
export const startAlerts: StartService<typeof mesh.alerts, AlertsEnv> = async (parts) => {
  const { env, bus, publisher, clients, log, clock, metrics: kit, signal: stopping } = parts;
  const { devices, data, webhooks } = clients;
  const opened = await openAlertsStore(env.STORE_URL, stopping);
  const system = parseStoreUrl(env.STORE_URL).kind;
  const alerts = traceStore(bus.tracer, opened.alerts, { system, collection: "alerts" });
  const rules = traceStore(bus.tracer, opened.rules, { system, collection: "rules" });
  const life = new AbortController();
  const common = { alerts, readRules: createRuleReader(rules, clock), devices, clock, signal: life.signal };
  const testSlots = traceStore(bus.tracer, opened.testSlots, { system, collection: "tests" });
  const newId = createIdSource(clock);
  const mail = await createProducer(bus, alertMailQueue);
  const send = createChannelSender({ mail, webhooks, clock });

  const { counter, measuredGauge } = metricsOn(kit.registry);
  const changes = counter("devmesh_alerts_total", "Alerts that fired or cleared.", "state", "severity");
  measuredGauge(
    "devmesh_alerts_open",
    "Alerts that pend or fire; of the replica that evaluates.",
    () => evaluation.open,
  );

  function publish(alert: StoredAlert, call?: CallContext): void {
    const { device_id: id } = alert;
    const timestamp = clock.now().toISOString();
    publisher.alert_changed({ id, timestamp, alert: describeAlert(alert) }, { call });
  }

  /** From when on devices have had time to connect again. */
  let seeingFrom: number | null = bus.connected ? clock.now().getTime() : null;
  bus.onDisconnect(() => {
    seeingFrom = null;
  });
  const connectedSince = () => {
    if (!bus.connected) return null;
    seeingFrom ??= clock.now().getTime() + graceMs;
    return seeingFrom;
  };

  const leadership = createLeadership({
    leases: opened.leases,
    name: "evaluation",
    holder: `${bus.replicaId}-${randomUUID()}`,
    onLead: () => undefined,
    clock,
    log,
    signal: life.signal,
  });
  const leads = () => leadership.leads;
  measuredGauge("devmesh_alerts_leader", "1 in the replica that evaluates.", () => (leads() ? 1 : 0));
  const source: EventSource = {
    follow: (subscriptions, follower, given) => followEvents(bus, subscriptions, follower, given),
    replay: (subscriptions, options) => replayEvents(bus, subscriptions, options),
  };
  const evaluation = createEvaluation({
    ...common,
    data,
    connectedSince,
    onChanged(alert) {
      changes.inc({ state: alert.state, severity: alert.severity });
      publish(alert);
    },
    leads,
    source,
    newId,
    log,
  });
  const notifier = createNotifier({
    ...common,
    rules,
    send,
    log,
    publicUrl: env.PUBLIC_URL?.replace(/\/+$/, ""),
    mailsPerHour: env.ALERTS_MAILS_PER_HOUR,
  });

  async function notify(): Promise<void> {
    if (leads()) await notifier.round();
  }
  async function removeOld(): Promise<void> {
    const before = clock.now().getTime() - keptMs;
    if (leads()) await rules.removeEnded(clock.now().getTime() - silenceKeptMs, life.signal);
    if (leads()) await rules.correctCounts(life.signal);
    if (leads()) await testSlots.prune(clock.now().getTime() - testWindowMs, life.signal);
    while (leads() && (await alerts.removeCleared(before, batchSize, life.signal)) === batchSize);
  }

  const onFailure = (err: unknown) => {
    if (!life.signal.aborted && !(err instanceof StaleChange))
      log.warn({ err }, "a round failed and is repeated");
  };
  const whileRunning = { onFailure, clock, signal: AbortSignal.any([life.signal, stopping]) };
  const repeated = Promise.all([
    repeat(evaluation.round, { everyMs: evaluateEveryMs, ...whileRunning }),
    repeat(notify, { everyMs: notifyEveryMs, ...whileRunning }),
    repeat(removeOld, { everyMs: removeEveryMs, ...whileRunning }),
  ]);

  return {
    implementation: mapStoreErrors(
      createAlerts({
        store: { rules, alerts, testSlots },
        devices,
        data,
        source,
        webhooks,
        send,
        onChanged: publish,
        newId,
        clock,
      }),
      isStoreUnavailable,
    ),
    ready: () => opened.ping(AbortSignal.timeout(readinessTimeoutMs)),
    async stop() {
      life.abort(new Error("the service stops"));
      await repeated;
      await leadership.stop();
    },
    close: () => opened.close(),
  };
};

function openAlertsStore(storeUrl: string, signal: AbortSignal): Promise<AlertsStore> {
  const mongodb = async () => (await import("./store/alerts-store.mongodb.ts")).openMongoAlertsStore;
  return openStore(parseStoreUrl(storeUrl), { sqlite: openSqliteAlertsStore, mongodb }, signal);
}
