import { openMongo } from "@devmesh/store/mongodb";
import { type MongoUrl, parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { fakeDevice } from "@devmesh/testkit/fakes";
import { afterAll, describe, expect, test } from "@jest/globals";
import { openMongoAlertsStore } from "../src/store/alerts-store.mongodb.ts";
import { openSqliteAlertsStore } from "../src/store/alerts-store.sqlite.ts";
import type { AlertsStore } from "../src/store/alerts-store.ts";
import type { StoredRule } from "../src/store/rule-store.ts";
import { type EvaluatedMesh, ruleOn, startEvaluation } from "./evaluation-fixture.ts";

const { signal } = new AbortController();

/** The conditions that hold for a device that has sent 9, is offline, has a delta and a tag, and was refused. */
const conditions = [
  { kind: "value", topic: "t", pointer: "", is: ">", than: 5 },
  { kind: "silent", topic: "other", longer_than: "PT1M" },
  { kind: "offline", longer_than: "PT1M" },
  { kind: "shadow", pointer: "/tags/on", is: "==", than: true },
  { kind: "not_taken", longer_than: "PT1M" },
  { kind: "event", name: "offline", count: 1, within: "PT1H" },
] as const;

/** What ends an alert without its condition, and what the alert says then. */
const ends = {
  device_deleted: (fixture: EvaluatedMesh) => fixture.deleteDevice("pump"),
  not_matching: (fixture: EvaluatedMesh) => fixture.mesh.devices.set("pump", deviceWith([])),
  rule_disabled: (fixture: EvaluatedMesh, rule: StoredRule) =>
    fixture.store.rules.changeRule({ ...rule, enabled: false, revision: 2 }, signal),
  rule_changed: (fixture: EvaluatedMesh, rule: StoredRule) =>
    fixture.store.rules.changeRule(
      { ...rule, where: { labels: { all: ["x"] } }, epoch: 2, revision: 2 },
      signal,
    ),
  rule_deleted: (fixture: EvaluatedMesh, { id }: StoredRule) => fixture.store.rules.removeRule(id, signal),
} as const;

function deviceWith(labels: readonly string[]) {
  const { shadow } = fakeDevice("pump");
  const state = { ...shadow.state, delta: { on: true } };
  return fakeDevice("pump", { shadow: { ...shadow, state, tags: { on: true, labels: [...labels] } } });
}

function noAlertIsForEver(open: () => Promise<AlertsStore>): void {
  for (const when of conditions)
    test.each(Object.entries(ends))(`an alert of kind ${when.kind} ends, and says %s`, async (why, end) => {
      const rule = ruleOn(when, { where: { labels: { all: ["site"] } } });
      await using fixture = await startEvaluation(rule, open);
      const { mesh, pass, publish, publishEvent, alerts, now } = fixture;
      mesh.devices.set("pump", deviceWith(["site"]));
      mesh.offlineSince.set("pump", now());
      await pass(2);
      publish("pump", "t", 9);
      publishEvent("offline", "pump");
      await pass(70);
      expect(await alerts()).toMatchObject([{ device_id: "pump", state: "firing" }]);
      await end(fixture, rule);
      await pass(11);
      expect(await alerts()).toMatchObject([{ state: "cleared", cleared_why: why }]);
      await pass(130);
      expect(await alerts()).toHaveLength(1);
    });
}

describe("SQLite", () => noAlertIsForEver(async () => openSqliteAlertsStore(":memory:")));

describeOverMongodb("MongoDB", (mongodb) => {
  const databases = new AsyncDisposableStack();
  let storeUrl: MongoUrl | null = null;
  afterAll(() => databases.disposeAsync());
  noAlertIsForEver(async () => {
    // One database, emptied for each test: a new one with its indexes costs more than the test.
    if (storeUrl === null)
      storeUrl = parseStoreUrl(databases.use(mongodb().newDatabase()).storeUrl) as MongoUrl;
    else await emptyCollections(storeUrl);
    return await openMongoAlertsStore(storeUrl, signal);
  });
});

async function emptyCollections(url: MongoUrl): Promise<void> {
  const { db, close } = await openMongo(url, [], signal);
  for (const collection of await db.collections()) await collection.deleteMany({});
  await close();
}
