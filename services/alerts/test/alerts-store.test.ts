import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "@devmesh/service-kit/clock";
import { createIdSource } from "@devmesh/service-kit/sortable-id";
import { type MongoUrl, parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { OpenAlerts } from "../src/evaluation/open-alerts.ts";
import { type AlertConditions, StaleChange, type StoredAlert } from "../src/store/alert-store.ts";
import { openMongoAlertsStore } from "../src/store/alerts-store.mongodb.ts";
import { openSqliteAlertsStore } from "../src/store/alerts-store.sqlite.ts";
import type { AlertsStore } from "../src/store/alerts-store.ts";
import type { StoredChannel, StoredRule, StoredSilence } from "../src/store/rule-store.ts";

const { signal } = new AbortController();
const newId = createIdSource(systemClock);

function newRule(more: Partial<StoredRule> = {}): StoredRule {
  return {
    id: newId(),
    name: "warm",
    enabled: true,
    severity: "warning",
    where: {},
    when: { kind: "value", topic: "$t/#", pointer: "/a.b", is: ">", than: 1 },
    for: "PT0S",
    forMs: 0,
    notify: [],
    repeat: null,
    note: null,
    epoch: 1,
    created_at: 1,
    revision: 1,
    ...more,
  };
}

function newAlert(more: Partial<StoredAlert> = {}): StoredAlert {
  return {
    id: newId(),
    rule_id: "rule",
    rule_name: "warm",
    epoch: 1,
    severity: "warning",
    device_id: "pump",
    state: "firing",
    since: 1,
    fired_at: 1,
    cleared_at: null,
    cleared_why: null,
    value: { "$a.b": 1 },
    flaps: 0,
    acknowledged_at: null,
    acknowledged_by: null,
    note: null,
    record: 7,
    unsent: ["firing"],
    held: false,
    notified_at: null,
    sent_to: [],
    revision: 0,
    ...more,
  };
}

function newChannel(more: { readonly id?: string } = {}): StoredChannel {
  const sending = { created_at: 1, sent_at: 0, storms: {}, revision: 1 };
  return { id: newId(), kind: "mail", name: "on call", to: ["a@b.example"], ...sending, ...more };
}

function newSilence(more: Partial<StoredSilence> = {}): StoredSilence {
  const where = { shadow: [{ pointer: "/tags/$a.b", is: 1 }] };
  return { id: newId(), where, rule_ids: null, from: 1, until: 5, note: null, created_at: 1, ...more };
}

/** `open` opens the store of the test, which closes it. */
function describeAlertsStore(open: () => Promise<AlertsStore>): void {
  let store: AlertsStore;
  beforeEach(async () => {
    store = await open();
  });
  afterEach(() => store.close());
  const save = (...alerts: StoredAlert[]) => store.alerts.commit({ save: alerts, remove: [] }, signal);
  const stored = (alert: StoredAlert) => ({ ...alert, revision: alert.revision + 1 });
  const ids = (alerts: readonly StoredAlert[]) => alerts.map(({ id }) => id);

  test("rules are kept up to a number, and changed by their revision", async () => {
    const [one, two, three] = [newRule(), newRule(), newRule()] as const;
    const inserted = [];
    for (const rule of [one, two, three]) inserted.push(await store.rules.insertRule(rule, 2, signal));
    expect(inserted).toEqual([true, true, false]);
    expect(await store.rules.listRules({ limit: 10 }, signal)).toEqual([one, two]);
    expect(await store.rules.listRules({ after: one.id, limit: 10 }, signal)).toEqual([two]);
    const disabled = { ...one, enabled: false, revision: 2 };
    const tries = Array.from({ length: 8 }, () => store.rules.changeRule(disabled, signal));
    expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1);
    expect(await store.rules.findRule(one.id, signal)).toEqual(disabled);
    expect([
      await store.rules.removeRule(one.id, signal),
      await store.rules.removeRule(one.id, signal),
    ]).toEqual([true, false]);
  });

  test("of what many insert at the same time, as much is stored as there may be", async () => {
    const { rules } = store;
    const many = <T>(insert: (id: string) => Promise<T>) =>
      Promise.all(Array.from({ length: 20 }, () => insert(newId())));
    const insertRule = (id: string) => rules.insertRule(newRule({ id }), 3, signal);
    const insertChannel = (id: string) => rules.insertChannel(newChannel({ id }), 3, signal);
    const insertSilence = (id: string) => rules.insertSilence(newSilence({ id }), 3, signal);
    const inserted = [await many(insertRule), await many(insertChannel), await many(insertSilence)];
    expect(inserted.map((some) => some.filter(Boolean).length)).toEqual([3, 3, 3]);
    expect(await rules.count(signal)).toEqual({ rules: 3, channels: 3, silences: 3 });
    // What is removed gives its place back.
    for (const { id } of await rules.listRules({ limit: 2 }, signal)) await rules.removeRule(id, signal);
    for (const { id } of await rules.listChannels({ limit: 2 }, signal))
      await rules.removeChannel(id, signal);
    await rules.removeEnded(6, signal);
    const again = [await many(insertRule), await many(insertChannel), await many(insertSilence)];
    expect(again.map((some) => some.filter(Boolean).length)).toEqual([2, 2, 3]);
    await rules.correctCounts(signal);
  });

  test("channels are kept up to a number, and know when they were sent something", async () => {
    const channel = newChannel();
    expect(await store.rules.insertChannel(channel, 1, signal)).toBe(true);
    expect(await store.rules.insertChannel({ ...channel, id: newId() }, 1, signal)).toBe(false);
    const sent = { sent_at: 5, storms: { "rule-1": 5 } };
    await store.rules.noteSent(channel.id, sent, signal);
    expect(await store.rules.listChannels({ limit: 9 }, signal)).toEqual([{ ...channel, ...sent }]);
    const renamed = { ...channel, name: "night", revision: 2 };
    const tries = Array.from({ length: 8 }, () => store.rules.changeChannel(renamed, signal));
    expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1);
    expect(await store.rules.findChannel(channel.id, signal)).toEqual({ ...renamed, ...sent });
    expect(await store.rules.findChannel("none", signal)).toBeNull();
    expect(await store.rules.removeChannel(channel.id, signal)).toBe(true);
    expect(await store.rules.removeChannel(channel.id, signal)).toBe(false);
  });

  test("silences are kept up to a number, and removed once they ended", async () => {
    const silences = [5, 9, 9].map((until) => newSilence({ until }));
    const [one, two, three] = silences as [StoredSilence, StoredSilence, StoredSilence];
    const inserted = [];
    for (const each of [one, two, three]) inserted.push(await store.rules.insertSilence(each, 2, signal));
    expect(inserted).toEqual([true, true, false]);
    expect(await store.rules.listSilences({ limit: 9 }, signal)).toEqual([one, two]);
    expect(await store.rules.count(signal)).toEqual({ rules: 0, channels: 0, silences: 2 });
    await store.rules.removeEnded(9, signal);
    expect(await store.rules.listSilences({ limit: 9 }, signal)).toEqual([two]);
    expect(await store.rules.removeSilence(two.id, signal)).toBe(true);
    expect(await store.rules.removeSilence(two.id, signal)).toBe(false);
  });

  test("an edition is another one after each change of the rows, and of no others", async () => {
    const kinds = ["rules", "channels", "silences"] as const;
    const seen = new Map(kinds.map((kind) => [kind, new Set<string>()]));
    const changed = async () => {
      const found = [];
      for (const kind of kinds) {
        const edition = await store.rules.editionOf(kind, signal);
        if (!seen.get(kind)?.has(edition)) found.push(kind);
        seen.get(kind)?.add(edition);
      }
      return found;
    };
    expect(await changed()).toEqual(kinds);
    expect(await changed()).toEqual([]);
    const rule = newRule();
    const mail = { kind: "mail" as const, name: "on call", to: ["a@b.example"] };
    const channel = { ...mail, id: newId(), created_at: 1, sent_at: 0, storms: {}, revision: 1 };
    const silence = newSilence();
    const steps = [
      ["rules", () => store.rules.insertRule(rule, 9, signal)],
      ["rules", () => store.rules.insertRule(newRule(), 9, signal)],
      ["rules", () => store.rules.changeRule({ ...rule, enabled: false, revision: 2 }, signal)],
      ["rules", () => store.rules.removeRule(rule.id, signal)],
      ["channels", () => store.rules.insertChannel(channel, 9, signal)],
      ["channels", () => store.rules.changeChannel({ ...channel, name: "night", revision: 2 }, signal)],
      ["channels", () => store.rules.noteSent(channel.id, { sent_at: 7, storms: {} }, signal)],
      ["silences", () => store.rules.insertSilence(silence, 9, signal)],
    ] as const;
    for (const [kind, step] of steps) {
      await step();
      expect(await changed()).toEqual([kind]);
    }
  });

  test("slots of tests are taken up to a number in a time, and given back", async () => {
    const take = (now: number) => store.testSlots.take("target a", 2, now - 10, now, signal);
    expect([await take(100), await take(101), await take(102)]).toEqual([true, true, false]);
    await store.testSlots.giveBack("target a", 101, signal);
    expect([await take(103), await take(104), await take(111)]).toEqual([true, false, true]);
    await store.testSlots.prune(200, signal);
    expect(await take(112)).toBe(true);
  });

  test("a rule and a device have one alert that pends or fires, and any number that cleared", async () => {
    const first = newAlert();
    await save(first);
    await expect(save(newAlert())).rejects.toThrow(StaleChange);
    const ended = {
      ...stored(first),
      state: "cleared" as const,
      cleared_at: 5,
      cleared_why: "condition" as const,
    };
    await save(ended);
    const second = newAlert();
    await save(second, newAlert({ device_id: "fan", state: "pending", fired_at: null, unsent: [] }));
    expect(await store.alerts.findNewest([first, { rule_id: "rule", device_id: "none" }], signal)).toEqual([
      stored(second),
      stored(ended),
    ]);
    expect(await store.alerts.listOpen({ after: "", limit: 9 }, signal)).toHaveLength(2);
    expect(await store.alerts.findAlert(first.id, signal)).toEqual(stored(ended));
  });

  test("of a commit that is under way all alerts are unsent, or none", async () => {
    const committed = save(
      ...Array.from({ length: 200 }, (_, nth) => newAlert({ device_id: `pump-${nth}` })),
    );
    let isDone = false;
    void committed.finally(() => {
      isDone = true;
    });
    const seen: number[] = [];
    while (!isDone) {
      await setImmediate();
      seen.push((await store.alerts.listUnsent({ limit: 500 }, signal)).length);
    }
    await committed;
    seen.push((await store.alerts.listUnsent({ limit: 500 }, signal)).length);
    expect(seen.filter((count) => count !== 0 && count !== 200)).toEqual([]);
    expect(seen.at(-1)).toBe(200);
  });

  test("a change of another revision than was read is refused, with all that is stored with it after it", async () => {
    const alert = newAlert();
    await save(alert);
    const tries = Array.from({ length: 8 }, () => save({ ...stored(alert), note: "seen" }));
    const outcomes = await Promise.allSettled(tries);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const progress = { cursor: "9", events: 4, watched_at: 1, blind: [[1, 2]] as const, revision: 0 };
    await expect(
      store.alerts.commit({ save: [stored(alert)], remove: [], progress }, signal),
    ).rejects.toThrow(StaleChange);
    expect(await store.alerts.readProgress(signal)).toBeNull();
  });

  test("the progress moves on once from each state", async () => {
    const progress = { cursor: "9", events: 4, watched_at: 1, blind: [[1, 2]] as const, revision: 0 };
    const move = (revision: number) =>
      store.alerts.commit({ save: [], remove: [], progress: { ...progress, revision } }, signal);
    const outcomes = await Promise.allSettled([move(0), move(0)]);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await store.alerts.readProgress(signal)).toEqual({ ...progress, revision: 1 });
    await expect(move(0)).rejects.toThrow(StaleChange);
    await move(1);
    expect(await store.alerts.readProgress(signal)).toMatchObject({ revision: 2 });
  });

  test("an alert that pends makes room for the one that fires again", async () => {
    const old = newAlert({ state: "cleared", cleared_at: 3, cleared_why: "condition" });
    const pending = newAlert({ state: "pending", fired_at: null });
    await save(old, pending);
    const again = { ...stored(old), state: "firing" as const, cleared_at: null, cleared_why: null };
    await store.alerts.commit({ save: [again], remove: [stored(pending)] }, signal);
    expect(await store.alerts.listOpen({ after: "", limit: 9 }, signal)).toEqual([stored(again)]);
  });

  test("one that pends beside one that fires is removed when all are read", async () => {
    const old = newAlert({ state: "cleared", cleared_at: 3, cleared_why: "condition" });
    const pending = newAlert({ state: "pending", fired_at: null });
    await save(old, pending);
    const again = { ...stored(old), state: "firing" as const, cleared_at: null, cleared_why: null };
    // SQLite commits both or none.
    const isStored = await save(again).then(
      () => true,
      () => false,
    );
    const open = await OpenAlerts.read(store.alerts, signal);
    expect(open.all).toEqual([isStored ? stored(again) : stored(pending)]);
    expect(await store.alerts.listOpen({ after: "", limit: 9 }, signal)).toEqual(open.all);
  });

  test("alerts are listed newest first by what they have, without those that pend", async () => {
    const all = [
      newAlert({ state: "pending", device_id: "a" }),
      newAlert({ severity: "critical", device_id: "b" }),
      newAlert({ rule_id: "other", state: "cleared", cleared_at: 4, unsent: [] }),
      newAlert({ device_id: "c" }),
    ];
    await save(...all);
    const [, one, two, three] = ids(all);
    const list = async (more: object) => ids(await store.alerts.listAlerts({ limit: 9, ...more }, signal));
    expect(await list({})).toEqual([three, two, one]);
    expect(await list({ after: three, limit: 1 })).toEqual([two]);
    expect(await list({ state: "firing" })).toEqual([three, one]);
    expect(await list({ severity: "critical", state: "firing" })).toEqual([one]);
    expect(await list({ rule_id: "other" })).toEqual([two]);
    expect(await list({ device_id: "c", rule_id: "rule" })).toEqual([three]);
  });

  test("alerts are counted as they are listed, and those that fire by rule", async () => {
    await save(
      newAlert({ device_id: "a", state: "pending" }),
      newAlert({ device_id: "b" }),
      newAlert({ device_id: "c", acknowledged_at: 5, acknowledged_by: "k" }),
      newAlert({ device_id: "d", state: "cleared", cleared_at: 4 }),
      newAlert({ device_id: "e", rule_id: "cold", rule_name: "cold", severity: "critical" }),
      newAlert({ device_id: null, rule_id: "mesh", rule_name: "mesh" }),
    );
    const count = (selection: AlertConditions) => store.alerts.countAlerts(selection, signal);
    expect([
      await count({}),
      await count({ state: "firing" }),
      await count({ rule_id: "rule", state: "firing" }),
    ]).toEqual([5, 4, 2]);
    const counts = await store.alerts.countFiring(signal);
    expect(counts.sort((one, other) => (one.rule_id < other.rule_id ? -1 : 1))).toEqual([
      { rule_id: "cold", rule_name: "cold", severity: "critical", firing: 1, unacknowledged: 1 },
      { rule_id: "mesh", rule_name: "mesh", severity: "warning", firing: 1, unacknowledged: 1 },
      { rule_id: "rule", rule_name: "warm", severity: "warning", firing: 2, unacknowledged: 1 },
    ]);
  });

  test("what is held is no longer unsent, and not removed", async () => {
    const alert = newAlert({ state: "cleared", cleared_at: 4, held: true });
    await save(alert, newAlert({ device_id: "fan", unsent: [], held: true }));
    expect(await store.alerts.listUnsent({ limit: 9 }, signal)).toEqual([]);
    expect(ids(await store.alerts.listHeld(9, signal))).toEqual([alert.id]);
    expect(await store.alerts.removeCleared(5, 9, signal)).toBe(0);
    await save({ ...stored(alert), held: false });
    expect(ids(await store.alerts.listUnsent({ limit: 9 }, signal))).toEqual([alert.id]);
    expect(await store.alerts.listHeld(9, signal)).toEqual([]);
  });

  test("what still fires, was sent long ago and is not acknowledged is to be repeated", async () => {
    const old = newAlert({ device_id: "old", unsent: [], notified_at: 5 });
    await save(
      old,
      newAlert({ device_id: "new", unsent: [], notified_at: 6 }),
      newAlert({ device_id: "unsent", notified_at: 5 }),
      newAlert({ device_id: "held", held: true, notified_at: 5 }),
      newAlert({ device_id: "never", unsent: [] }),
      newAlert({ device_id: "seen", unsent: [], notified_at: 5, acknowledged_at: 5 }),
      newAlert({ device_id: "cleared", unsent: [], notified_at: 5, state: "cleared" }),
      newAlert({ device_id: "other", unsent: [], notified_at: 5, rule_id: "other" }),
    );
    const listed = (rule_ids: readonly string[]) =>
      store.alerts.listToRepeat({ rule_ids, sentBefore: 5, limit: 9 }, signal);
    expect(ids(await listed(["rule", "none"]))).toEqual([old.id]);
    expect(await listed(["rule", "other"])).toHaveLength(2);
  });

  test("what nobody was notified of is listed until it is marked, and not removed before", async () => {
    const sent = newAlert({ state: "cleared", cleared_at: 4, unsent: [], device_id: "a" });
    const unsent = newAlert({ state: "cleared", cleared_at: 4, device_id: "b" });
    await save(sent, unsent);
    expect(ids(await store.alerts.listUnsent({ limit: 9 }, signal))).toEqual([unsent.id]);
    expect(await store.alerts.listUnsent({ limit: 9, exceptRules: ["rule"] }, signal)).toEqual([]);
    expect(await store.alerts.removeCleared(4, 9, signal)).toBe(0);
    expect(await store.alerts.removeCleared(5, 9, signal)).toBe(1);
    await save({ ...stored(unsent), unsent: [] });
    expect(await store.alerts.listUnsent({ limit: 9 }, signal)).toEqual([]);
    expect(await store.alerts.removeCleared(5, 9, signal)).toBe(1);
  });
}

describe("alerts in SQLite", () => {
  let remove = async () => {};
  afterEach(() => remove());
  describeAlertsStore(async () => {
    const folder = await tempFolder();
    remove = () => folder.remove();
    return openSqliteAlertsStore(join(folder.path, `${randomUUID()}.db`));
  });
});

describeOverMongodb("alerts in MongoDB", (mongodb) => {
  let remove = async () => {};
  afterEach(() => remove());
  describeAlertsStore(async () => {
    const database = mongodb().newDatabase();
    remove = async () => database[Symbol.asyncDispose]();
    return openMongoAlertsStore(parseStoreUrl(database.storeUrl) as MongoUrl, signal);
  });
});
