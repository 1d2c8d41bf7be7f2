import { createLogger } from "@devmesh/service-kit/logger";
import { createIdSource } from "@devmesh/service-kit/sortable-id";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { expect, test } from "@jest/globals";
import { cleared, elapse, observe } from "../src/evaluation/alert-states.ts";
import type { ChannelMessage } from "../src/notifying/channel-sender.ts";
import { createNotifier } from "../src/notifying/notifier.ts";
import { openSqliteAlertsStore } from "../src/store/alerts-store.sqlite.ts";
import { createRuleReader } from "../src/store/read-on-change.ts";
import type { StoredChannel, StoredRule, StoredSilence } from "../src/store/rule-store.ts";

const { signal } = new AbortController();

/** A notifier with a mail channel `mail`, a webhook channel `chat`, and a rule that notifies some of them. */
async function startNotifier(
  notify: readonly string[],
  { mailsPerHour = 100, repeat = null }: { mailsPerHour?: number; repeat?: string | null } = {},
) {
  const clock = new ManualClock();
  const now = () => clock.now().getTime();
  const newId = createIdSource(clock);
  const store = openSqliteAlertsStore(":memory:");
  const rule: StoredRule = {
    id: "rule",
    name: "warm",
    enabled: true,
    severity: "warning",
    where: {},
    when: { kind: "value", topic: "t", pointer: "", is: ">", than: 1 },
    for: "PT0S",
    forMs: 0,
    notify,
    repeat,
    note: null,
    epoch: 1,
    created_at: 0,
    revision: 1,
  };
  const common = { created_at: 0, sent_at: 0, storms: {}, revision: 1 };
  const channels: readonly StoredChannel[] = [
    { ...common, id: "mail", kind: "mail", name: "mail", to: ["ann@example.com"] },
    { ...common, id: "chat", kind: "webhook", name: "chat", webhook_id: "wh_1", format: "slack" },
  ];
  for (const channel of channels) await store.rules.insertChannel(channel, 9, signal);
  await store.rules.insertRule(rule, 9, signal);
  const sent: [channel: string, message: ChannelMessage][] = [];
  const failing = new Set<string>();
  const gone = new Set<string>();
  let meanwhile = async (): Promise<void> => undefined;
  const notifier = createNotifier({
    rules: store.rules,
    readRules: createRuleReader(store.rules, clock),
    alerts: {
      ...store.alerts,
      async listUnsent(page, until) {
        await meanwhile();
        return await store.alerts.listUnsent(page, until);
      },
    },
    devices: {
      selectDevices: async ({ ids = [] }) => ({ next: null, items: ids.filter((id) => !id.startsWith("x")) }),
      readDevice: async ({ id }) => ({ etag: "1", device: fakeDevice(id, { name: `The ${id}` }) as never }),
    },
    async send({ id }, message) {
      if (failing.has(id)) throw new Error(`${id} is away`);
      if (gone.has(id)) return false;
      sent.push([id, message]);
      return true;
    },
    publicUrl: undefined,
    mailsPerHour,
    clock,
    log: createLogger({ service: "test", level: "silent" }),
    signal,
  });
  return {
    clock,
    failing,
    gone,
    /** What was sent since the last call: the channel and the devices with their states. */
    async round(): Promise<string[]> {
      await notifier.round().catch(() => undefined);
      return sent
        .splice(0)
        .map(
          ([id, { mail }]) => `${id}: ${mail.alerts.map((one) => `${one.device_id} ${one.state}`).join()}`,
        );
    },
    /** Does something in each round from now on, right before the alerts are listed. */
    beforeListing(act: () => Promise<void>): void {
      meanwhile = act;
    },
    async messages(): Promise<ChannelMessage[]> {
      await notifier.round();
      return sent.splice(0).map(([, message]) => message);
    },
    async addRule(id: string, more: Partial<StoredRule> = {}): Promise<void> {
      await store.rules.insertRule({ ...rule, id, name: id, ...more }, 9, signal);
    },
    async addChannel(id: string): Promise<void> {
      const channel = { ...common, id, kind: "mail" as const, name: id, to: [`${id}@example.com`] };
      await store.rules.insertChannel(channel, 9, signal);
    },
    async fire(device: string, value: string | number = 2, id = rule.id): Promise<void> {
      const seen = { holds: true, at: now(), record: 0, value };
      const of = { ...rule, id };
      const { open } = elapse(observe({ open: null, cleared: null }, of, device, seen, newId), of, now());
      await store.alerts.commit({ save: open === null ? [] : [open], remove: [] }, signal);
    },
    async clear(device: string): Promise<void> {
      const [open = null] = await store.alerts.findNewest([{ rule_id: "rule", device_id: device }], signal);
      const after = cleared({ open, cleared: null }, "condition", now());
      await store.alerts.commit({ save: after.cleared === null ? [] : [after.cleared], remove: [] }, signal);
    },
    async acknowledge(device: string): Promise<void> {
      const [alert] = await store.alerts.findNewest([{ rule_id: "rule", device_id: device }], signal);
      if (alert === undefined) throw new Error("nothing fires");
      await store.alerts.commit({ save: [{ ...alert, acknowledged_at: now() }], remove: [] }, signal);
    },
    async silence(seconds: number, where: StoredSilence["where"] = {}): Promise<string> {
      const id = newId();
      const times = { from: now(), until: now() + seconds * 1_000, created_at: now() };
      await store.rules.insertSilence({ id, where, rule_ids: null, note: null, ...times }, 9, signal);
      return id;
    },
    endSilence: (id: string) => store.rules.removeSilence(id, signal),
    unsent: async () =>
      (await store.alerts.listUnsent({ limit: 99 }, signal)).map(({ device_id }) => device_id),
  };
}

test("each channel gets three messages of a minute at once, and what comes after them in one", async () => {
  const { clock, fire, clear, round, unsent } = await startNotifier(["mail", "chat"]);
  await fire("a");
  expect(await round()).toEqual(["chat: a firing", "mail: a firing"]);
  expect(await unsent()).toEqual([]);
  await clock.advance(1_000);
  await fire("b");
  expect(await round()).toEqual(["chat: b firing", "mail: b firing"]);
  await clock.advance(1_000);
  await fire("c");
  expect(await round()).toEqual(["chat: c firing", "mail: c firing"]);
  await clock.advance(1_000);
  await fire("d");
  await clear("a");
  await clock.advance(56_999);
  expect(await round()).toEqual([]);
  await clock.advance(1);
  expect(await round()).toEqual(["chat: a cleared,d firing", "mail: a cleared,d firing"]);
  expect(await round()).toEqual([]);
  // The second message of the minute before is older than a minute by then.
  await clock.advance(1_000);
  await clear("b");
  expect(await round()).toEqual(["chat: b cleared", "mail: b cleared"]);
  await clear("c");
  expect(await round()).toEqual([]);
});

test("a channel that fails delays no other, and gets its message when it is back", async () => {
  const { clock, fire, clear, failing, round, unsent } = await startNotifier(["chat", "mail"]);
  failing.add("chat");
  await fire("a");
  expect(await round()).toEqual(["mail: a firing"]);
  expect(await round()).toEqual([]);
  expect(await unsent()).toEqual(["a"]);
  failing.clear();
  expect(await round()).toEqual(["chat: a firing"]);
  expect(await unsent()).toEqual([]);
  // A change is for all channels again, also for those that have been notified of what was before.
  await clock.advance(60_000);
  failing.add("chat");
  await clear("a");
  expect(await round()).toEqual(["mail: a cleared"]);
  failing.clear();
  expect(await round()).toEqual(["chat: a cleared"]);
});

test("an alert for a webhook that is gone is not kept as unsent", async () => {
  const { fire, gone, round, unsent } = await startNotifier(["mail", "chat"]);
  gone.add("chat");
  await fire("a");
  expect(await round()).toEqual(["mail: a firing"]);
  expect(await unsent()).toEqual([]);
});

test("mails over the hour's number wait, and messages to webhooks do not", async () => {
  const { clock, fire, round } = await startNotifier(["mail", "chat"], { mailsPerHour: 1 });
  await fire("a");
  expect(await round()).toEqual(["chat: a firing", "mail: a firing"]);
  await clock.advance(60_000);
  await fire("b");
  expect(await round()).toEqual(["chat: b firing"]);
  await clock.advance(3_600_000);
  expect(await round()).toEqual(["mail: b firing"]);
});

test("an attempt to send mails that fails takes none of the hour's number", async () => {
  const { fire, failing, round } = await startNotifier(["mail"], { mailsPerHour: 1 });
  failing.add("mail");
  await fire("a");
  expect([await round(), await round()]).toEqual([[], []]);
  failing.clear();
  expect(await round()).toEqual(["mail: a firing"]);
});

test("an alert of a rule and a channel that are created while a round begins is sent", async () => {
  const { fire, addRule, addChannel, beforeListing, round } = await startNotifier(["mail"]);
  expect(await round()).toEqual([]);
  beforeListing(async () => {
    await addChannel("new");
    await addRule("newer", { notify: ["new"] });
    await fire("a", 2, "newer");
    beforeListing(async () => undefined);
  });
  expect([await round(), await round()].flat()).toEqual(["new: a firing"]);
});

test("a message names twenty alerts, and has no large value and no secret", async () => {
  const { clock, fire, messages } = await startNotifier(["chat"]);
  await fire("d00", "x".repeat(2_000));
  await fire("d01", `dt_${"a".repeat(32)}`);
  for (let at = 2; at < 25; at++) {
    // More at a time are a storm.
    await clock.advance(10_000);
    await fire(`d${at}`);
  }
  const [message] = await messages();
  expect(message?.mail).toMatchObject({ more: 5 });
  expect(message?.mail.alerts).toHaveLength(20);
  expect(message?.event).toMatchObject({ type: "devmesh.alerts", data: { more: 5 } });
  const { alerts = [] } = (message?.event.data ?? {}) as { alerts?: { value: unknown }[] };
  expect(alerts).toHaveLength(20);
  expect(alerts.slice(0, 3).map(({ value }) => value)).toEqual([null, "dt_[redacted]", 2]);
  expect(JSON.stringify(message)).not.toContain("aaaa");
});

test("a storm of more alerts than a message combines delays no alert of another rule", async () => {
  const { clock, fire, addRule, messages } = await startNotifier(["chat"]);
  await addRule("other");
  await Promise.all(Array.from({ length: 5_021 }, (_, at) => fire(`d${at}`)));
  await fire("pump", 2, "other");
  expect((await messages())[0]?.mail.storms).toMatchObject([{ rule_id: "rule", firing: 5_000 }]);
  await clock.advance(60_000);
  expect((await messages())[0]?.mail).toMatchObject({ alerts: [{ device_id: "pump" }], storms: [] });
  await clock.advance(15 * 60_000);
  expect((await messages())[0]?.mail.storms).toMatchObject([{ firing: 21 }]);
});

test("what fires in a silence is sent when it ends, and what cleared in it is not", async () => {
  const { clock, fire, clear, silence, round, unsent } = await startNotifier(["mail"]);
  await fire("told");
  expect(await round()).toEqual(["mail: told firing"]);
  await silence(600);
  await fire("a");
  await fire("b");
  await clear("b");
  await clear("told");
  await clock.advance(300_000);
  expect(await round()).toEqual([]);
  expect(await unsent()).toEqual([]);
  await clock.advance(299_999);
  expect(await round()).toEqual([]);
  await clock.advance(1);
  // People know that this one fired, and so they are notified of its end.
  expect(await round()).toEqual(["mail: told cleared,a firing"]);
});

test("a silence is for the devices that it names, and ends when it is deleted", async () => {
  const { fire, silence, endSilence, round, clock } = await startNotifier(["mail"]);
  // The devices that meet its condition have no `x` in front.
  const id = await silence(600, { text: { none: ["x"] } });
  await fire("a");
  await fire("x");
  expect(await round()).toEqual(["mail: x firing"]);
  await endSilence(id);
  await clock.advance(60_000);
  expect(await round()).toEqual(["mail: a firing"]);
});

test("an alert that still fires is sent again until somebody acknowledges it", async () => {
  const { clock, fire, acknowledge, round } = await startNotifier(["mail"], { repeat: "PT12H" });
  await fire("a");
  await fire("b");
  expect(await round()).toEqual(["mail: a firing,b firing"]);
  await acknowledge("b");
  await clock.advance(12 * 3_600_000 - 1);
  expect(await round()).toEqual([]);
  await clock.advance(10_000);
  expect(await round()).toEqual(["mail: a firing"]);
  await clock.advance(60_000);
  expect(await round()).toEqual([]);
});
