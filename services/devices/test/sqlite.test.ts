import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import {
  conditionalQueries,
  createSqliteDeviceStore,
  deviceQueries,
} from "../src/store/device-store.sqlite.ts";
import type { OrderedRange } from "../src/store/list-order.ts";
import { describeConditions } from "./conditions.suite.ts";
import { describeDeviceStore, newDevice, walkDevices } from "./device-store.suite.ts";

const { signal } = new AbortController();

const create = async () => {
  const folder = await tempFolder();
  const path = join(folder.path, `${randomUUID()}.db`);
  return { open: async () => createSqliteDeviceStore(path), remove: () => folder.remove() };
};
describeDeviceStore("SQLite", create);
describeConditions("SQLite", create);

test("every query finds its rows by an index or in the order of the list", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "devices.db");
  await createSqliteDeviceStore(path).close();
  const db = new DatabaseSync(path);
  const plans: Record<string, string> = {};
  for (const [purpose, sql] of Object.entries(deviceQueries)) {
    const rows = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    plans[purpose] = rows.map((row) => String(row.detail)).join("; ");
  }
  db.close();
  for (const purpose of [
    "owner",
    "find",
    "has",
    "labelsOf",
    "replace",
    "recordPresence",
    "beginOperation",
    "replaceOperation",
    "remove",
  ]) {
    expect([purpose, plans[purpose]]).toEqual([
      purpose,
      expect.stringMatching(/^SEARCH devices USING .*\(id=\?\)/),
    ]);
  }
  expect(plans.replaceDocument).toContain("USING INTEGER PRIMARY KEY (rowid=?)");
  expect(plans.listOperations).toContain("devices_marked");
  expect(plans.listOnline).toContain("devices_online");
  for (const plan of Object.values(plans)) expect(plan).not.toContain("TEMP B-TREE");
});

test("a condition finds its devices by an index, or reads narrow rows in the order of the list", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "devices.db");
  await createSqliteDeviceStore(path).close();
  const db = new DatabaseSync(path);
  const planOf = ({ sql }: { readonly sql: string }) =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map((row) => String(row.detail))
      .join("; ");
  const { list, listRange, containing, count, countBy } = conditionalQueries;
  expect(planOf(list({}, false))).toMatch(/^SEARCH devices USING .*\(rowid>\?\)$/);
  expect(planOf(list({}, true))).toMatch(/^SEARCH devices USING .*\(rowid<\?\)$/);
  expect(planOf(list({ words: ["x"] }, false))).toMatch(/^SEARCH devices USING .*\(rowid>\?\)/);
  expect(planOf(list({ labels: ["x"] }, false))).toMatch(
    /^SEARCH devices USING INTEGER PRIMARY KEY \(rowid=\?\).*SEARCH device_labels USING PRIMARY KEY \(label=\?\)/,
  );
  expect(planOf(list({ versions: ["1"] }, false))).toMatch(/devices_version \(firmware=\? AND rowid>\?\)$/);
  for (const by of ["version", "last_seen"] as const) {
    const index = by === "version" ? "devices_version (firmware" : "devices_last_seen (last_seen";
    for (const descending of [false, true]) {
      const rangeOf = (range: OrderedRange) => planOf(listRange({}, { by, descending }, range));
      expect(rangeOf({ value: null, after: 7 })).toContain(`${index}=? AND rowid${descending ? "<" : ">"}?)`);
      expect(rangeOf({ beyond: "1" })).toContain(`${index}${descending ? "<" : ">"}?)`);
      expect(rangeOf({ beyond: null })).toContain(`${index}`);
      for (const range of [{ value: "1", after: 7 }, { beyond: "1" }, { beyond: null }])
        expect(rangeOf(range)).not.toContain("TEMP B-TREE");
    }
  }
  expect(planOf(list({ ids: ["a"] }, false))).toContain("(id=? AND rowid>?)");
  expect(planOf(containing(["a", "b"]))).toMatch(/^SEARCH documents USING INTEGER PRIMARY KEY \(rowid=\?\)/);
  expect(planOf(count({ online: true, silentSince: 1 }))).toContain("COVERING INDEX devices_fleet");
  expect(planOf(count({ words: ["x"] }))).toMatch(/^SCAN devices;/);
  expect(planOf(count({ noIds: ["a"] }))).toMatch(/^SCAN devices;/);
  expect(planOf(countBy("version", {}))).toContain("COVERING INDEX");
  expect(planOf(countBy("label", {}))).toMatch(/SCAN device_labels/);
  expect(planOf(countBy("label", { silentSince: 1 }))).toMatch(/SCAN device_labels; LIST .*; SCAN devices;/);
  db.close();
});

test("a list of 50,000 devices is walked page by page without missing or repeating one", async () => {
  const store = createSqliteDeviceStore(":memory:");
  const ids = Array.from({ length: 50_000 }, (_, at) => `device-${at}`);
  await Promise.all(
    ids.map((id) => store.insert(newDevice(id, { tags: { labels: [`l${id}`] } }), null, signal)),
  );
  expect(await walkDevices(store)).toEqual(ids);
  expect(await walkDevices(store, true)).toEqual(ids.toReversed());
  const found = await store.list({ condition: { words: ["ldevice-49999"] }, limit: 10 }, signal);
  expect(found?.map(({ id }) => id)).toEqual(["device-49999"]);
  await store.close();
});

test("other work gets its turn while a list reads the documents of 2,500 devices", async () => {
  const store = createSqliteDeviceStore(":memory:");
  const ids = Array.from({ length: 2_500 }, (_, at) => `device-${at}`);
  const wanted = ["device-0", "device-999", "device-1000", "device-2499"];
  const device = (id: string) => newDevice(id, { tags: { kind: wanted.includes(id) ? 'a "b"' : "c" } });
  await Promise.all(ids.map((id) => store.insert(device(id), null, signal)));
  const condition = { contained: ['"kind":"a \\"b\\""', '"kind"'], words: ["device"] };
  const idsOf = async (listing: { descending?: boolean; after?: string; limit: number }) =>
    (await store.list({ condition, ...listing }, signal))?.map(({ id }) => id);

  let turns = 0;
  let isListing = true;
  const turn = () => {
    turns += 1;
    if (isListing) setImmediate(turn);
  };
  setImmediate(turn);
  expect(await idsOf({ limit: 10 })).toEqual(wanted);
  isListing = false;
  expect(turns).toBeGreaterThan(20);
  expect(await idsOf({ limit: 3, descending: true })).toEqual(wanted.toReversed().slice(0, 3));
  expect(await idsOf({ limit: 10, after: "1000" })).toEqual(wanted.slice(2));

  const stopping = new AbortController();
  const stopped = store.list({ condition, limit: 10 }, stopping.signal);
  stopping.abort(new Error("stopped"));
  await expect(stopped).rejects.toThrow("stopped");
  await store.close();
});
