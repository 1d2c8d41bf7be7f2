import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Device } from "@devmesh/contracts/model/device";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { columnsOf } from "@devmesh/contracts/model/record-columns";
import type { RuleCondition } from "@devmesh/contracts/model/rule";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { EventFollower, StreamedEvent } from "@devmesh/service-kit/events/event-stream";
import { createLogger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { createIdSource } from "@devmesh/service-kit/sortable-id";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { fakeDevice } from "@devmesh/testkit/fakes";
import type { EventSource } from "../src/evaluation/device-feed.ts";
import { createEvaluation } from "../src/evaluation/evaluation.ts";
import { tryRule } from "../src/evaluation/trial.ts";
import type { ChannelMessage } from "../src/notifying/channel-sender.ts";
import { createNotifier } from "../src/notifying/notifier.ts";
import type { StoredAlert } from "../src/store/alert-store.ts";
import { openSqliteAlertsStore } from "../src/store/alerts-store.sqlite.ts";
import type { AlertsStore } from "../src/store/alerts-store.ts";
import { createRuleReader } from "../src/store/read-on-change.ts";
import type { StoredRule } from "../src/store/rule-store.ts";

const { signal } = new AbortController();
const log = createLogger({ service: "test", level: "silent" });

/** A rule of all devices. */
export function ruleOn(when: RuleCondition, more: Partial<StoredRule> = {}): StoredRule {
  return {
    ...{ id: "rule", name: "rule", enabled: true, severity: "warning", where: {}, when, for: "PT0S" },
    ...{ forMs: 0, notify: [], repeat: null, note: null, epoch: 1, created_at: 0, revision: 1 },
    ...more,
  };
}

export type EvaluatedMesh = Awaited<ReturnType<typeof startEvaluation>>;

/**
 * An evaluation whose rounds a test makes, with a rule, and a mesh of devices, records and the events of an hour. A
 * rule can name the channel `mail`.
 */
export async function startEvaluation(
  rule: StoredRule,
  openStore: () => AlertsStore | Promise<AlertsStore> = () => openSqliteAlertsStore(":memory:"),
) {
  const clock = new ManualClock();
  const now = () => clock.now().getTime();
  const store = await openStore();
  const newId = createIdSource(clock);
  const devices = new Map<string, Device>();
  const records: DataRecord[] = [];
  const kept: StreamedEvent[] = [];
  const followers = new Set<EventFollower>();
  const changed: StoredAlert[] = [];
  const mesh = {
    devices,
    records,
    /** Since when a device has no connection. */
    offlineSince: new Map<string, number>(),
    /** As the service keeps it; null while the broker is away. */
    connectedSince: now() as number | null,
    devicesAway: false,
    dataAway: false,
    leads: true,
  };
  await store.rules.insertRule(rule, 500, signal);
  await store.rules.insertChannel(
    {
      ...{ id: "mail", kind: "mail", name: "mail", to: ["ann@example.com"] },
      ...{ created_at: 0, sent_at: 0, storms: {}, revision: 1 },
    },
    9,
    signal,
  );

  function meets(id: string, { silent_for, labels }: DeviceCondition): boolean {
    const since = mesh.offlineSince.get(id);
    const isOffline =
      silent_for === undefined || (since !== undefined && now() - since >= lengthOf(silent_for));
    const own = devices.get(id)?.shadow.tags.labels;
    return isOffline && (labels?.all?.every((label) => Array.isArray(own) && own.includes(label)) ?? true);
  }
  const reached = () => {
    if (mesh.devicesAway) throw new Error("devices is away");
  };
  const called = {
    devices: {
      async selectDevices({ where, ids }: { where: DeviceCondition; ids?: string[] | undefined }) {
        reached();
        const asked = ids === undefined ? [...devices.keys()] : ids.filter((id) => devices.has(id));
        return { next: null, items: asked.filter((id) => meets(id, where)) };
      },
      async listDevices({ where = {} }: { where?: DeviceCondition | undefined }) {
        reached();
        return { next: null, items: [...devices.values()].filter(({ id }) => meets(id, where)) };
      },
      async readDevice({ id }: { id: string }) {
        reached();
        const device = devices.get(id);
        if (device === undefined) throw new ServiceError({ code: "not_found", reason: "device_not_found" });
        return { etag: "1", device: device as never };
      },
    },
    data: {
      async followRecords({ after }: { after: string | null }) {
        if (mesh.dataAway) throw new Error("data is away");
        const page = columnsOf(after === null ? [] : records.slice(Number(after)));
        return { next: String(records.length), caught_up_at: new Date(now()).toISOString(), records: page };
      },
      async queryRecords({ since = "" }: { since?: string | undefined }) {
        return { next: null, items: records.filter(({ timestamp }) => timestamp >= since).slice(0, 1) };
      },
      async listLatest() {
        const newest = new Map(records.map((record) => [record.topic, record]));
        return { next: null, items: [...newest.values()] };
      },
    },
  };
  const source: EventSource = {
    follow(_, follower, ended) {
      followers.add(follower);
      ended.addEventListener("abort", () => followers.delete(follower));
      follower.began({ after: kept.length, gap: false });
      return new Promise(() => undefined);
    },
    async *replay() {
      yield { position: { after: 0, gap: false }, events: [] };
      yield { position: { after: kept.length, gap: false }, events: [...kept] };
    },
  };
  const start = () =>
    createEvaluation({
      ...{ readRules: createRuleReader(store.rules, clock), alerts: store.alerts, ...called },
      ...{ source, clock, log, newId, signal },
      connectedSince: () => mesh.connectedSince,
      onChanged: (alert) => void changed.push(alert),
      leads: () => mesh.leads,
    });
  let evaluation = start();
  const messages: ChannelMessage[] = [];
  const notifier = createNotifier({
    ...{ rules: store.rules, readRules: createRuleReader(store.rules, clock), alerts: store.alerts },
    ...{ devices: called.devices, clock, log, signal },
    publicUrl: undefined,
    mailsPerHour: 1_000,
    async send(_, message) {
      messages.push(message);
      return true;
    },
  });

  function publishEvent(name: string, id: string, more: object = {}): void {
    const timestamp = clock.now().toISOString();
    const service = name.startsWith("rpc") ? "rpc-bridge" : "devices";
    const payload = Buffer.from(JSON.stringify({ id, timestamp, ...more }));
    const event = { sequence: kept.length + 1, service, name, key: id, payload };
    kept.push(event);
    for (const follower of followers) follower.events([event]);
  }
  return {
    mesh,
    store,
    clock,
    now,
    messages,
    /** Each alert that fired or cleared, as it was then. */
    changed,
    publishEvent,
    addDevice(id: string, more: Partial<Device> = {}): void {
      devices.set(id, fakeDevice(id, { created_at: new Date(now()).toISOString(), ...more }));
    },
    /** A device whose shadow has these states, as an event reports it. */
    change(id: string, state: Partial<Device["shadow"]["state"]>): void {
      const { shadow } = fakeDevice(id);
      const device = fakeDevice(id, {
        shadow: { ...shadow, state: { ...shadow.state, ...state }, timestamp: now() },
      });
      devices.set(id, device);
      publishEvent("updated", id, { device });
    },
    deleteDevice(id: string): void {
      devices.delete(id);
      publishEvent("deleted", id);
    },
    publish(device_id: string, name: string, value: unknown = 1, at = now()): void {
      const timestamp = new Date(at).toISOString();
      const topic = `db/${device_id}/${name}`;
      records.push({ id: records.length + 1, timestamp, device_id, topic, message: JSON.stringify(value) });
    },
    /** Another replica takes over. */
    restart(): void {
      followers.clear();
      evaluation = start();
    },
    gap(): void {
      for (const follower of followers) follower.began({ after: kept.length, gap: true });
    },
    /** Rounds for so many seconds, one a second. */
    async pass(seconds: number): Promise<void> {
      for (let second = 0; second < seconds; second++) {
        await clock.advance(1_000);
        await evaluation.round().catch(() => undefined);
        await notifier.round().catch(() => undefined);
        // What is read of the past is read beside the rounds.
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    alerts: () => store.alerts.listAlerts({ limit: 5_000 }, signal),
    /** Alerts of devices: their state, the seconds from a time until they fired and cleared, and why they cleared. */
    async found(since: number): Promise<string[]> {
      const seconds = (at: number | null) => (at === null ? "" : ` ${(at - since) / 1_000}`);
      return (await store.alerts.listAlerts({ rule_id: rule.id, limit: 5_000 }, signal))
        .map(
          ({ device_id, state, fired_at, cleared_at, cleared_why }) =>
            `${device_id} ${state}${seconds(fired_at)}${seconds(cleared_at)}${cleared_why === null ? "" : ` ${cleared_why}`}`,
        )
        .sort();
    },
    async try(overMs: number) {
      using call = createCallContext({ timeoutMs: 10_000 });
      const options = { ...called, source, clock, readBlind: async () => [] };
      return await tryRule(options as never, rule, overMs, call);
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}
