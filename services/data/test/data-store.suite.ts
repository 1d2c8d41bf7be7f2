import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { columnsOf } from "@devmesh/contracts/model/record-columns";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  type DataMessage,
  type DataStore,
  type FollowRequest,
  InvalidCursor,
  type LatestRequest,
  maxPayloadBytes,
  type RecordPageRequest,
  type RecordSelection,
} from "../src/store/data-store.ts";

/** An adapter under test: a fresh store, and the same one opened again. */
export interface StoreUnderTest {
  readonly store: DataStore;
  /** Of its first record; default 1. */
  readonly firstId?: number;
  /** Closes the store and opens it again. */
  reopen(): Promise<DataStore>;
  dispose(): Promise<void>;
}

const start = Date.parse("2026-01-01T00:00:00.000Z");
const streamCreated = "2026-01-01T00:00:00.123456789Z";
const megabyte = 1024 * 1024;
const pageBytes = 511 * 1024;

/** A text message, by default at QoS 0. */
function message(
  deviceId: string,
  name: string,
  payload: string | Uint8Array,
  more: Partial<DataMessage> = {},
): DataMessage {
  return {
    delivery: null,
    timestamp: start,
    deviceId,
    topic: `db/${deviceId}/${name}`,
    payload: Buffer.from(payload),
    encoding: typeof payload === "string" ? "text" : "base64",
    ...more,
  };
}

function delivered(sequence: number, deviceId = "pump", stream = streamCreated): DataMessage {
  return message(deviceId, "n", String(sequence), {
    delivery: { streamCreated: stream, sequence },
    timestamp: start + sequence,
  });
}

type Query = Partial<RecordSelection> & Partial<Pick<RecordPageRequest, "skip" | "limit" | "after">>;

async function page(store: DataStore, query: Query, bounds: Partial<RecordPageRequest> = {}) {
  const { skip = 0, limit = 100, after, order = "asc", ...conditions } = query;
  return await store.readPage(
    { order, ...conditions },
    {
      caller: "test",
      skip,
      limit,
      ...(after === undefined ? {} : { after }),
      maxBytes: pageBytes,
      searchMs: 10_000,
      ...bounds,
    },
    new AbortController().signal,
  );
}

const never = new AbortController().signal;

function latest(store: DataStore, deviceId: string | null, bounds: Partial<LatestRequest> = {}) {
  return store.readLatest(deviceId, { caller: "test", limit: 100, maxBytes: pageBytes, ...bounds }, never);
}

function countTopics(store: DataStore, deviceId: string, most: number): Promise<number> {
  return store.countTopics(deviceId, { caller: "test", most }, never);
}

/** Walks all pages as a caller does: with what is left of the limit, and everything else as it was. */
async function walk(
  store: DataStore,
  query: Query,
  bounds: Partial<RecordPageRequest> = {},
): Promise<DataRecord[]> {
  const items: DataRecord[] = [];
  let after = query.after;
  const limit = query.limit === undefined ? 100 : query.limit;
  for (;;) {
    const left = limit === null ? null : limit - items.length;
    const found = await page(
      store,
      { ...query, limit: left, ...(after === undefined ? {} : { after }) },
      bounds,
    );
    items.push(...found.items);
    if (found.next === null || items.length === limit) return items;
    after = found.next;
  }
}

const shown = (records: readonly DataRecord[]) => records.map((record) => record.message);

/**
 * The rules of `queryRecords` a second time, without an index: `records` are in the order of storing, `after` is an
 * id.
 */
function naive(records: readonly DataRecord[], query: Query): DataRecord[] {
  const { deviceId, topic, filter, since, until, order = "asc", skip = 0, limit = 100, after } = query;
  let matching = records.filter((record) => {
    if (after !== undefined && (order === "asc" ? record.id <= Number(after) : record.id >= Number(after)))
      return false;
    const time = Date.parse(record.timestamp);
    if (deviceId !== undefined && !record.topic.startsWith(`db/${deviceId}/`)) return false;
    if (
      topic !== undefined &&
      deviceId !== undefined &&
      !asRegExp(topic).test(record.topic.slice(`db/${deviceId}/`.length))
    ) {
      return false;
    }
    if (filter !== undefined && !record.topic.includes(filter)) {
      if (record.encoding === "base64" || !record.message.includes(filter)) return false;
    }
    return (since === undefined || time >= since) && (until === undefined || time < until);
  });
  if (order === "desc") matching = matching.toReversed();
  if (skip >= 0) return matching.slice(skip, limit === null ? undefined : skip + limit);
  return matching.slice(skip).slice(0, limit ?? undefined);
}

/** An MQTT topic filter as a regular expression: the naive way. */
function asRegExp(filter: string): RegExp {
  if (filter === "#") return /^/;
  const literal = (level: string) => level.replace(/[.*?^${}()|[\]\\]/g, "\\$&");
  const levels = filter.split("/");
  const open = levels.at(-1) === "#";
  const fixed = (open ? levels.slice(0, -1) : levels).map((level) =>
    level === "+" ? "[^/]*" : literal(level),
  );
  return new RegExp(`^${fixed.join("/")}${open ? "(/.*)?" : ""}$`, "su");
}

/** How thorough the suite is. */
export interface SuiteOptions {
  /** Queries made up at random; fewer where each takes many round trips. */
  readonly randomQueries?: number;
  /** Whether the bounds that take thousands of records are tested; a segment of seven records makes that slow. */
  readonly manyRecords?: boolean;
}

/** What every adapter of {@link DataStore} must do. */
export function describeDataStore(
  adapter: string,
  open: () => Promise<StoreUnderTest>,
  { randomQueries = 400, manyRecords = true }: SuiteOptions = {},
): void {
  /** Runs a test on a new store. */
  const withStore = (run: (store: DataStore, under: StoreUnderTest) => Promise<void>) => async () => {
    const under = await open();
    try {
      await run(under.store, under);
    } finally {
      await under.dispose();
    }
  };

  const testMany = manyRecords ? test : () => undefined;

  describe(`${adapter}: storing`, () => {
    test(
      "ids ascend in the order of storing, and records of one millisecond are distinct",
      withStore(async (store) => {
        await store.append([message("a", "x", "1"), message("a", "x", "1"), message("b", "x", "2")]);
        await store.append([message("a", "x", "3", { timestamp: start - 5_000 })]);
        const { items } = await page(store, {});
        expect(shown(items)).toEqual(["1", "1", "2", "3"]);
        const ids = items.map((record) => record.id);
        expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
        expect(items[0]).toEqual({
          id: items[0]?.id,
          timestamp: "2026-01-01T00:00:00.000Z",
          device_id: "a",
          topic: "db/a/x",
          message: "1",
        });
      }),
    );

    test(
      "a batch that is delivered again, whole or in part, stores nothing twice",
      withStore(async (store) => {
        const batch = [1, 2, 3].map((sequence) => delivered(sequence));
        const first = await store.append(batch);
        expect(first).toMatchObject({ stored: 3, repeated: 0, refused: 0 });
        const again = await store.append(batch);
        expect(again).toEqual({ stored: 0, repeated: 3, refused: 0, ids: [null, null, null] });
        const partly = await store.append([delivered(3), delivered(4)]);
        expect(partly).toMatchObject({ stored: 1, repeated: 1, refused: 0 });
        const records = await walk(store, {});
        expect([...first.ids, partly.ids[1]]).toEqual(records.map(({ id }) => id));
        expect(partly.ids[0]).toBeNull();
        expect(shown(await walk(store, {}))).toEqual(["1", "2", "3", "4"]);
      }),
    );

    test(
      "the same sequence of a stream that was made anew is another message",
      withStore(async (store) => {
        await store.append([delivered(1)]);
        expect(await store.append([delivered(1, "pump", "2026-02-02T00:00:00Z")])).toMatchObject({
          stored: 1,
        });
      }),
    );

    test(
      "a sequence that the broker gave again, at a later time, is another message, stored once",
      withStore(async (store) => {
        const lost = [1, 2, 3].map((sequence) => delivered(sequence));
        await store.append(lost);
        const givenAgain = [2, 3, 4].map((sequence) => ({
          ...delivered(sequence),
          timestamp: start + 60_000 + sequence,
          payload: Buffer.from(`${sequence} again`),
        }));
        expect(await store.append(givenAgain)).toMatchObject({ stored: 3, repeated: 0, refused: 0 });
        expect(await store.append([...lost, ...givenAgain])).toMatchObject({ stored: 0, repeated: 6 });
        expect(shown(await walk(store, {}))).toEqual(["1", "2", "3", "2 again", "3 again", "4 again"]);
      }),
    );

    test(
      "the highest sequence that is stored is known of each stream",
      withStore(async (store, under) => {
        const other = "2026-02-02T00:00:00Z";
        expect(await store.lastSequence(streamCreated)).toBeNull();
        await store.append([message("a", "x", "at QoS 0"), delivered(7), delivered(5)]);
        await store.append([delivered(3, "pump", other)]);
        const again = await under.reopen();
        expect(await again.lastSequence(streamCreated)).toBe(7);
        expect(await again.lastSequence(other)).toBe(3);
        expect(await again.lastSequence("2026-03-03T00:00:00Z")).toBeNull();
      }),
    );

    test(
      "what was stored is there after the store was opened again, and ids go on",
      withStore(async (store, under) => {
        await store.append([delivered(1), delivered(2)]);
        const before = await walk(store, {});
        const again = await under.reopen();
        expect(await walk(again, {})).toEqual(before);
        await again.append([delivered(2), delivered(3)]);
        const after = await walk(again, {});
        expect(shown(after)).toEqual(["1", "2", "3"]);
        expect(after[2]?.id).toBeGreaterThan(before[1]?.id ?? Infinity);
      }),
    );

    test(
      "an id is not used again after its record was deleted",
      withStore(async (store, under) => {
        await store.append([delivered(1), delivered(2)]);
        const last = (await walk(store, {})).at(-1)?.id ?? Infinity;
        expect(await store.deleteHeaviest(10, 0)).toBe(2);
        const again = await under.reopen();
        await again.append([delivered(3)]);
        expect((await walk(again, { after: String(last) })).map((record) => record.message)).toEqual(["3"]);
      }),
    );

    test(
      "binary payloads, NULs and the largest payload come back as they were",
      withStore(async (store) => {
        const binary = Buffer.from([0xff, 0x00, 0x80]);
        const large = "x".repeat(maxPayloadBytes);
        await store.append([
          message("a", "bin", binary),
          message("a", "nul", "a\0b"),
          message("a", "empty", ""),
          message("a", "large", large),
          message("a", "large-bin", Buffer.alloc(maxPayloadBytes, 0xfe)),
        ]);
        const items = await walk(store, {});
        expect(items[0]).toMatchObject({ message: binary.toString("base64"), encoding: "base64" });
        expect(shown(items.slice(1, 3))).toEqual(["a\0b", ""]);
        expect(items[3]?.message).toBe(large);
        expect(Buffer.from(items[4]?.message ?? "", "base64").length).toBe(maxPayloadBytes);
      }),
    );
  });

  describe(`${adapter}: querying`, () => {
    let under: StoreUnderTest;
    let store: DataStore;
    let all: DataRecord[];
    beforeAll(async () => {
      under = await open();
      store = under.store;
      await store.append(assorted());
      all = await walk(store, { limit: null });
    });
    afterAll(() => under.dispose());

    test("any query equals the naive statement of the rules, in one page or many", async () => {
      const ids = all.map((record) => record.id);
      await fc.assert(
        fc.asyncProperty(anyQuery, fc.option(fc.nat()), fc.boolean(), async (any, start, smallPages) => {
          const goesOn = start !== null && (any.skip ?? 0) >= 0;
          const query = goesOn ? { ...any, after: String(all[start % all.length]?.id) } : any;
          const bounds = smallPages ? { maxBytes: 700, searchMs: 0 } : {};
          const found = (await walk(store, query, bounds)).map((record) => record.id);
          expect(found).toEqual(naive(all, query).map((record) => record.id));
          expect(found.every((id) => ids.includes(id))).toBe(true);
        }),
        { numRuns: randomQueries },
      );
    });

    test.each([
      "%",
      "_",
      '"',
      "'",
      "*",
      "%%",
      "__",
      "50%",
      'a"b',
      "a*b",
      "a_b",
      "''",
      '""',
      "AND",
      "NOT",
      "^",
      "(",
      "db/",
      "/",
    ])("%j is searched for literally", async (filter) => {
      const found = await walk(store, { filter, limit: null });
      expect(found).toEqual(naive(all, { filter, limit: null }));
    });

    test.each([
      "é",
      "éa",
      "Straße",
      "東京都",
      "東京",
      "東",
      "😀",
      "😀😀",
      "😀😀😀",
      "a😀",
      "\ud83d",
      "\u{1F600}x",
    ])("the non-ASCII filter %j finds exactly what holds it", async (filter) => {
      const found = await walk(store, { filter, limit: null });
      const expected = filter.isWellFormed() ? naive(all, { filter, limit: null }) : [];
      expect(found.map((record) => record.id)).toEqual(expected.map((record) => record.id));
    });

    test("upper and lower case are different", async () => {
      expect((await walk(store, { filter: "straße" })).length).toBe(0);
      expect((await walk(store, { filter: "Straße" })).length).toBeGreaterThan(0);
    });

    test("a base64 record is found by its topic, not by its base64 form", async () => {
      const record = all.find((candidate) => candidate.encoding === "base64");
      if (record === undefined) throw new Error("there is one");
      expect(await walk(store, { filter: record.message, limit: null })).toEqual([]);
      expect(await walk(store, { filter: record.topic, limit: null })).toContainEqual(record);
    });

    test("text after a NUL is found", async () => {
      const found = await walk(store, { filter: "behind" });
      expect(shown(found)).toContain("before\0behind");
    });

    test("device ab sees neither db/abc nor db/a", async () => {
      const topics = (await walk(store, { deviceId: "ab", limit: null })).map((record) => record.topic);
      expect(topics.length).toBeGreaterThan(0);
      expect(topics.every((topic) => topic.startsWith("db/ab/"))).toBe(true);
    });

    test.each([
      ["temp", ["temp"]],
      ["temp/#", ["temp", "temp/in", "temp/in/1", "temp/out"]],
      ["temp/+", ["temp/in", "temp/out"]],
      ["+/in", ["temp/in"]],
      ["+/in/#", ["temp/in", "temp/in/1"]],
      ["temp/+/1", ["temp/in/1"]],
      ["tem", []],
      ["tem/#", []],
      ["+", ["", "temp", "temperature", "a.b"]],
      ["a.b", ["a.b"]],
    ])("the topic filter %j matches exactly %j", async (topic, names) => {
      const found = await walk(store, { deviceId: "topics", topic, limit: null });
      expect(found.map((record) => record.topic.slice("db/topics/".length)).sort()).toEqual(
        [...names].sort(),
      );
    });

    test("skip reaches past either end without harm", async () => {
      expect(await walk(store, { skip: all.length })).toEqual([]);
      expect(await walk(store, { skip: all.length + 1_000_000 })).toEqual([]);
      expect(await walk(store, { skip: -1_000_000, limit: 3 })).toEqual(all.slice(0, 3));
      expect(await walk(store, { skip: -10, limit: 100 })).toEqual(all.slice(-10));
      expect(await walk(store, { skip: -10, limit: 4 })).toEqual(all.slice(-10).slice(0, 4));
      expect(await walk(store, { limit: 0 })).toEqual([]);
      expect(await walk(store, { skip: -5, limit: 0 })).toEqual([]);
    });

    test("skip passes over records of the time asked for, and no others", async () => {
      for (const time of [
        { since: start + 50 },
        { until: start + 50 },
        { since: start + 20, until: start + 80 },
      ])
        for (const skip of [5, 30, -5, -30])
          for (const order of ["asc", "desc"] as const) {
            const query = { ...time, skip, order, limit: 3 };
            expect([query, await walk(store, query)]).toEqual([query, naive(all, query)]);
          }
    });

    test("after goes on after a record id, in either order", async () => {
      const [third] = all.slice(2);
      if (third === undefined) throw new Error("there are three");
      const after = String(third.id);
      expect(await walk(store, { after, limit: null })).toEqual(all.slice(3));
      expect(await walk(store, { after, order: "desc", limit: null })).toEqual(all.slice(0, 2).toReversed());
      expect(await walk(store, { after, skip: 2, limit: 2 })).toEqual(all.slice(5, 7));
      for (const at of [30, 31, 32, 33]) {
        const onward = { after: String(all[at]?.id), order: "desc", limit: 3 } as const;
        const before = all.slice(0, at).toReversed();
        for (const skip of [5, 10])
          expect(await walk(store, { ...onward, skip })).toEqual(before.slice(skip, skip + 3));
      }
    });

    test.each(["x", "-1", "1.5", "r_1", "s_1_2_3_4", "r_1_x_", "99999999999999999999", " 1", ""])(
      "the cursor %j is refused",
      async (after) => {
        await expect(page(store, { after })).rejects.toThrow(InvalidCursor);
      },
    );

    test("a record id does not go with a negative skip", async () => {
      await expect(page(store, { after: "1", skip: -1 })).rejects.toThrow(InvalidCursor);
    });

    test("an aborted query ends with the signal's reason", async () => {
      const reason = new Error("given up");
      const query = store.readPage(
        { order: "asc" },
        { caller: "test", skip: 0, limit: 1, maxBytes: pageBytes, searchMs: 1_000 },
        AbortSignal.abort(reason),
      );
      await expect(query).rejects.toBe(reason);
    });
  });

  describe(`${adapter}: pages`, () => {
    test(
      "an empty store answers an empty page to every query",
      withStore(async (store) => {
        for (const query of [
          {},
          { skip: -10 },
          { skip: 10 },
          { filter: "abc" },
          { filter: "a" },
          { deviceId: "a", topic: "#" },
        ]) {
          expect(await page(store, query)).toEqual({ next: null, items: [] });
        }
      }),
    );

    testMany(
      "5,000 records of 1 KB come in pages below their size, complete and in order",
      withStore(async (store) => {
        for (let batch = 0; batch < 5; batch++) {
          await store.append(
            Array.from({ length: 1_000 }, (_, at) =>
              message("big", "kb", `${batch * 1_000 + at}:`.padEnd(1_024, "x"), { timestamp: start + at }),
            ),
          );
        }
        let pages = 0;
        const seen: number[] = [];
        let after: string | undefined;
        do {
          const found = await page(store, {
            limit: 5_000 - seen.length,
            ...(after === undefined ? {} : { after }),
          });
          expect(Buffer.byteLength(JSON.stringify(found))).toBeLessThanOrEqual(512 * 1024);
          seen.push(...found.items.map((record) => Number.parseInt(record.message, 10)));
          pages++;
          after = found.next ?? undefined;
        } while (after !== undefined && seen.length < 5_000);
        expect(pages).toBeGreaterThan(9);
        expect(seen).toEqual(Array.from({ length: 5_000 }, (_, at) => at));
        expect((await walk(store, { limit: 5_000, skip: -5_000 })).length).toBe(5_000);
      }),
    );

    test(
      "a cursor misses no record that is stored while it is in use",
      withStore(async (store) => {
        await store.append([1, 2, 3].map((sequence) => delivered(sequence)));
        const first = await page(store, { limit: 2 });
        await store.append([delivered(4)]);
        const rest = await walk(store, { after: first.next ?? "", limit: null });
        expect(shown(rest)).toEqual(["3", "4"]);
      }),
    );

    test(
      "a negative skip gives no more than that many records, also when more are stored between its pages",
      withStore(async (store) => {
        await store.append(Array.from({ length: 20 }, (_, at) => delivered(at + 1)));
        const first = await page(store, { skip: -5, limit: null }, { maxBytes: 250 });
        await store.append([delivered(21), delivered(22)]);
        const rest = await walk(store, { skip: -5, limit: null, after: first.next ?? "" });
        expect(shown([...first.items, ...rest])).toEqual(["16", "17", "18", "19", "20"]);
      }),
    );
  });

  describe.each([
    ["that are read", false],
    ["that were stored while somebody followed", true],
  ])(`${adapter}: following records %s`, (_records, isFollowed) => {
    const follow = (store: DataStore, more: Partial<FollowRequest>) =>
      store.follow({ caller: "test", after: 0, limit: 100, maxBytes: pageBytes, ...more }, never);
    /** `begin`: the id after which the first record comes. */
    const withFollowed = (work: (store: DataStore, begin: number) => Promise<void>) =>
      withStore(async (store, { firstId = 1 }) => {
        if (isFollowed) await follow(store, { after: null });
        await work(store, firstId - 1);
      });

    test(
      "begins at the end, and goes on in the order of storing",
      withFollowed(async (store) => {
        await store.append([message("a", "x", "1")]);
        const { next, ...begin } = await follow(store, { after: null });
        expect(begin).toEqual({ records: columnsOf([]), atEnd: true });
        await store.append([message("b", "x", "2", { timestamp: start - 9 }), message("a", "y", "3")]);
        const page = await follow(store, { after: next });
        expect([page.records.messages, page.atEnd]).toEqual([["2", "3"], true]);
        expect(await follow(store, { after: page.next })).toEqual({
          records: columnsOf([]),
          next: page.next,
          atEnd: true,
        });
      }),
    );

    test(
      "answers the topics and devices that are wanted, and moves past the others",
      withFollowed(async (store, after) => {
        await store.append([
          message("a", "temp", "1"),
          message("b", "temp/in", "2"),
          message("b", "temperature", "3"),
          message("b", "x/y/z", "4"),
          message("c", "temp", "5"),
        ]);
        const of = async (more: Partial<FollowRequest>) =>
          (await follow(store, { after, ...more })).records.messages;
        expect(await of({ topics: ["temp/#"] })).toEqual(["1", "2", "5"]);
        expect(await of({ topics: ["temp", "x/+/z"] })).toEqual(["1", "4", "5"]);
        expect(await of({ topics: ["#"], deviceIds: ["b"] })).toEqual(["2", "3", "4"]);
        const none = await follow(store, { after, topics: ["none"] });
        expect(none).toEqual({ records: columnsOf([]), next: after + 5, atEnd: true });
      }),
    );

    test(
      "a page is cut by records and by bytes, and the next one begins where it ends",
      withFollowed(async (store, begin) => {
        const texts = Array.from({ length: 1_203 }, (_, at) => String(at));
        await store.append(texts.map((text) => message(Number(text) % 3 === 0 ? "a" : "b", "x", text)));
        const cuts = [{ limit: 7 }, { limit: 501 }, { maxBytes: 999 }, { maxBytes: 1, from: 1_000 }];
        for (const { from = 0, ...cut } of cuts) {
          const found: string[] = [];
          for (let after = begin + from; ; ) {
            const page = await follow(store, { ...cut, after, deviceIds: ["a"] });
            found.push(...page.records.messages);
            if (page.atEnd) break;
            expect(page.next).toBeGreaterThan(after);
            after = page.next;
          }
          expect(found).toEqual(texts.slice(from).filter((text) => Number(text) % 3 === 0));
        }
      }),
    );

    testMany(
      "a page looks at a bounded number of records",
      withFollowed(async (store) => {
        for (let batch = 0; batch < 11; batch++)
          await store.append(Array.from({ length: 1_000 }, () => message("a", "x", "1")));
        const first = await follow(store, { topics: ["none"] });
        expect(first).toEqual({ records: columnsOf([]), next: 10_000, atEnd: false });
        expect(await follow(store, { topics: ["none"], after: first.next })).toMatchObject({ atEnd: true });
      }),
    );

    test(
      "an id beyond the last record is refused, as in a store that was restored",
      withFollowed(async (store, begin) => {
        await store.append([message("a", "x", "1")]);
        await expect(follow(store, { after: begin + 5 })).rejects.toThrow(InvalidCursor);
      }),
    );
  });

  describe(`${adapter}: the newest record of each topic`, () => {
    test(
      "is that of the highest id, by topic, of that device alone",
      withStore(async (store, { firstId = 1 }) => {
        await store.append([
          message("ab", "temp", "1", { timestamp: start + 9 }),
          message("ab", "temp/in", "2"),
          message("ab", "état", "3"),
          message("ab", "raw", Uint8Array.of(0xff)),
          message("abc", "temp", "4"),
          message("a", "temp", "5"),
        ]);
        await store.append([message("ab", "temp", "6", { timestamp: start + 8 })]);
        const { next, items } = await latest(store, "ab");
        expect(next).toBeNull();
        expect(items).toEqual([
          expect.objectContaining({
            id: firstId + 3,
            topic: "db/ab/raw",
            message: "/w==",
            encoding: "base64",
          }),
          expect.objectContaining({ id: firstId + 6, topic: "db/ab/temp", message: "6", device_id: "ab" }),
          expect.objectContaining({ id: firstId + 1, topic: "db/ab/temp/in", message: "2" }),
          expect.objectContaining({ id: firstId + 2, topic: "db/ab/état", message: "3" }),
        ]);
        expect(await latest(store, "b")).toEqual({ next: null, items: [] });
        const topicsOf = async (bounds: Partial<LatestRequest>) =>
          (await latest(store, null, bounds)).items.map(({ topic }) => topic);
        const all = ["a/temp", "ab/raw", "ab/temp", "ab/temp/in", "ab/état", "abc/temp"].map(
          (name) => `db/${name}`,
        );
        expect(await topicsOf({})).toEqual(all);
        expect(await topicsOf({ after: "db/ab/temp", limit: 2 })).toEqual(all.slice(3, 5));
        await expect(topicsOf({ after: "x" })).rejects.toThrow(InvalidCursor);
        expect(await countTopics(store, "ab", 100)).toBe(4);
        expect(await countTopics(store, "ab", 3)).toBe(3);
        expect(await countTopics(store, "b", 100)).toBe(0);
      }),
    );

    test(
      "is the one before where that is deleted, and none where no record is left",
      withStore(async (store) => {
        const old = { timestamp: start - 100 };
        const texts = async () => (await latest(store, null)).items.map(({ message }) => message);
        await store.append([message("a", "x", "1"), message("a", "y", "2", old), message("b", "x", "3")]);
        await store.append([message("a", "x", "4", old), message("b", "x", "5", old)]);
        await store.append([message("c", "x", "6", { timestamp: start + 100 }), message("b", "x", "7", old)]);
        expect(await texts()).toEqual(["4", "2", "7", "6"]);
        expect(await store.deleteExpired(start - 99, 100)).toBe(4);
        expect(await texts()).toEqual(["1", "3", "6"]);
        expect(await countTopics(store, "a", 100)).toBe(1);
        expect(await store.deleteExpired(start + 1, 100)).toBe(2);
        expect(await texts()).toEqual(["6"]);
        expect(await store.deleteExpired(start + 101, 100)).toBe(1);
        expect(await texts()).toEqual([]);
        await store.append([message("b", "x", "8")]);
        expect(await texts()).toEqual(["8"]);
      }),
    );

    test(
      "comes in pages by count and by bytes, which miss and repeat no topic",
      withStore(async (store) => {
        const name = (at: number) => `n${String(at).padStart(3, "0")}`;
        await store.append(
          Array.from({ length: 60 }, (_, at) => message("pump", name(59 - at), "x".repeat(1_024))),
        );
        for (const bounds of [{ limit: 7 }, { limit: 60, maxBytes: 5_000 }, { limit: 1, maxBytes: 10 }]) {
          const topics: string[] = [];
          let after: string | null | undefined;
          do {
            const found = await latest(store, "pump", { ...bounds, ...(after && { after }) });
            expect(found.items.length).toBeLessThanOrEqual(bounds.limit);
            topics.push(...found.items.map(({ topic }) => topic));
            after = found.next;
          } while (after !== null);
          expect(topics).toEqual(Array.from({ length: 60 }, (_, at) => `db/pump/${name(at)}`));
        }
        await expect(latest(store, "pump", { after: "db/pumpkin/x" })).rejects.toThrow(InvalidCursor);
      }),
    );

    test(
      "follows what retention and a purge delete",
      withStore(async (store, under) => {
        await store.append([
          message("pump", "old", "1"),
          message("pump", "both", "2"),
          message("pump", "both", "3", { timestamp: start + 9 }),
          message("lamp", "x", "4", { timestamp: start + 9 }),
        ]);
        await store.deleteExpired(start + 5, 100);
        expect(shown((await latest(store, "pump")).items)).toEqual(["3"]);
        await store.append([message("pump", "both", "5", { timestamp: start + 1 })]);
        expect(shown((await latest(store, "pump")).items)).toEqual(["5"]);
        await store.deleteExpired(start + 5, 100);
        const again = await under.reopen();
        expect(shown((await latest(again, "pump")).items)).toEqual(["3"]);
        await again.refuseDevice("pump");
        await again.deleteRecordsOf("pump", 100);
        expect(await latest(again, "pump")).toEqual({ next: null, items: [] });
        expect(shown((await latest(again, "lamp")).items)).toEqual(["4"]);
      }),
    );

    test(
      "an aborted request ends with the signal's reason",
      withStore(async (store) => {
        const reason = new Error("given up");
        const request = { caller: "test", limit: 1, maxBytes: pageBytes };
        await expect(store.readLatest("pump", request, AbortSignal.abort(reason))).rejects.toBe(reason);
      }),
    );
  });

  describe(`${adapter}: purging a device`, () => {
    test(
      "deletes its records alone, in steps, and refuses its messages from then on",
      withStore(async (store, under) => {
        await store.append(
          Array.from({ length: 50 }, (_, at) => delivered(at + 1, at % 2 === 0 ? "gone" : "here")),
        );
        await store.refuseDevice("gone");
        expect(await store.append([delivered(51, "gone"), delivered(52, "here")])).toMatchObject({
          stored: 1,
          refused: 1,
        });
        expect(await store.unfinishedPurges()).toEqual(["gone"]);
        expect(await store.deleteRecordsOf("gone", 10)).toBe(10);
        const again = await under.reopen();
        expect(await again.unfinishedPurges()).toEqual(["gone"]);
        expect(await again.deleteRecordsOf("gone", 100)).toBe(15);
        expect(await again.deleteRecordsOf("gone", 100)).toBe(0);
        await again.finishPurge("gone");
        expect(await again.unfinishedPurges()).toEqual([]);
        expect((await walk(again, {})).every((record) => record.device_id === "here")).toBe(true);
        expect((await walk(again, {})).length).toBe(26);
        expect(await again.append([delivered(53, "gone")])).toMatchObject({ refused: 1 });
      }),
    );

    test(
      "once admitted again, only later messages are taken",
      withStore(async (store) => {
        await store.refuseDevice("pump");
        await store.finishPurge("pump");
        await store.admitDevice("pump", start + 10);
        expect(await store.append([delivered(9), delivered(10), delivered(11)])).toMatchObject({
          stored: 1,
          refused: 2,
        });
        await store.admitDevice("pump", start + 1_000);
        expect(await store.append([delivered(12)])).toMatchObject({ stored: 1 });
        await store.refuseDevice("pump");
        expect(await store.append([delivered(13)])).toMatchObject({ refused: 1 });
      }),
    );

    test(
      "admitting a device that was never refused changes nothing",
      withStore(async (store) => {
        await store.admitDevice("pump", start + 10);
        expect(await store.append([delivered(1)])).toMatchObject({ stored: 1 });
      }),
    );

    test(
      "an admission is forgotten when nothing older can come, a refusal never",
      withStore(async (store) => {
        for (const device of ["back", "gone"]) await store.refuseDevice(device);
        for (const device of ["back", "gone"]) await store.finishPurge(device);
        await store.admitDevice("back", start + 10);
        await store.forgetAdmissions(start + 10);
        expect(await store.append([delivered(1, "back")])).toMatchObject({ refused: 1 });
        await store.forgetAdmissions(start + 11);
        expect(await store.append([delivered(1, "back"), delivered(2, "gone")])).toMatchObject({
          stored: 1,
          refused: 1,
        });
      }),
    );
  });

  describe(`${adapter}: retention`, () => {
    test(
      "deletes what is older than a moment, oldest first, in steps",
      withStore(async (store) => {
        const times = [5, 1, 9, 3, 7];
        await store.append(times.map((time) => message("a", "x", String(time), { timestamp: start + time })));
        expect(await store.deleteExpired(start + 6, 2)).toBe(2);
        expect(shown(await walk(store, {}))).toEqual(["5", "9", "7"]);
        expect(await store.deleteExpired(start + 6, 2)).toBe(1);
        expect(await store.deleteExpired(start + 6, 2)).toBe(0);
        expect(await store.size()).toMatchObject({ oldest: start + 7 });
      }),
    );

    test(
      "of large records no more are deleted than weigh what is over the bound",
      withStore(async (store) => {
        const payload = "x".repeat(200_000);
        await store.append(Array.from({ length: 20 }, (_, at) => message("a", "x", `${at} ${payload}`)));
        const full = (await store.size()).bytes;
        expect(await store.deleteHeaviest(500, full - 1)).toBe(1);
        // What is counted while it is deleted may weigh less for a moment.
        await eventually(async () => {
          while ((await store.deleteHeaviest(500, full / 2)) > 0);
          return (await store.size()).bytes <= full / 2;
        });
        const left = await walk(store, { limit: null });
        expect(left.length).toBeGreaterThanOrEqual(8);
        expect(left.at(-1)?.message.startsWith("19 ")).toBe(true);
      }),
    );

    test(
      "of devices that store unequal amounts the heaviest pays, and none loses a record while another weighs more",
      withStore(async (store, under) => {
        const count = { light: 6, middle: 40, heavy: 160 };
        const text = (name: string, at: number) => `${name}-${at}-`.padEnd(2_000, "xyz");
        const append = (name: keyof typeof count) =>
          store.append(Array.from({ length: count[name] }, (_, at) => message(name, "x", text(name, at))));
        const left = async (kept: DataStore) => {
          const found = { light: 0, middle: 0, heavy: 0 };
          for (const { device_id } of await walk(kept, { limit: null }))
            found[device_id as keyof typeof found]++;
          return found;
        };
        for (const name of ["light", "middle", "heavy"] as const) await append(name);
        const full = (await store.size()).bytes;
        const bound = (part: number) => (full * part) / (6 + 40 + 160);

        while ((await store.deleteHeaviest(7, bound(120))) > 0);
        const first = await left(store);
        expect(first).toMatchObject({ light: 6, middle: 40 });
        expect(first.heavy).toBeGreaterThanOrEqual(40);
        expect(first.heavy).toBeLessThan(110);

        const again = await under.reopen();
        while ((await again.deleteHeaviest(7, bound(44))) > 0);
        const second = await left(again);
        expect(second.light).toBe(6);
        expect(second.heavy).toBeLessThan(40);
        expect(Math.abs(second.heavy - second.middle)).toBeLessThanOrEqual(1);
        expect(second.heavy).toBeGreaterThanOrEqual(6);
        // The oldest of a device have gone, and searches find what is left, and nothing else.
        const oldest = 160 - second.heavy;
        expect((await walk(again, { filter: `heavy-${oldest}-` })).length).toBe(1);
        expect((await walk(again, { filter: `heavy-${oldest - 1}-` })).length).toBe(0);
        expect((await walk(again, { filter: "light-3-" })).length).toBe(1);
        expect((await walk(again, { filter: "ght", limit: null })).length).toBe(6);

        // What a purged device weighed counts no more.
        await again.refuseDevice("heavy");
        while ((await again.deleteRecordsOf("heavy", 50)) > 0);
        await again.finishPurge("heavy");
        expect(await again.deleteHeaviest(1, (await again.size()).bytes - 1)).toBe(1);
        expect(await left(again)).toEqual({ light: 6, middle: second.middle - 1, heavy: 0 });
      }),
    );

    test(
      "of devices that store equal amounts the oldest records go first",
      withStore(async (filling, under) => {
        const names = Array.from({ length: 12 }, (_, at) => `device-${at}`);
        const text = (round: number) => `${String(round).padStart(2, "0")}-`.padEnd(1_000, "xyz");
        for (let round = 0; round < 20; round++)
          await filling.append(names.map((name) => message(name, "x", text(round))));
        // No index is built while records go: their devices would count as heavier until it is counted again.
        const store = await under.reopen();
        const half = (await store.size()).bytes / 2;
        while ((await store.deleteHeaviest(50, half)) > 0);
        const records = await walk(store, { limit: null });
        const firstLeft = names.map((name) =>
          Number(records.find(({ device_id }) => device_id === name)?.message.slice(0, 2)),
        );
        expect(Math.max(...firstLeft) - Math.min(...firstLeft)).toBeLessThanOrEqual(1);
        expect(records.length).toBe(firstLeft.reduce((sum, round) => sum + 20 - round, 0));
      }),
    );

    test(
      "deleting the heaviest gives space back, and queries stay right",
      withStore(async (store) => {
        for (let batch = 0; batch < 8; batch++) {
          await store.append(
            Array.from({ length: 500 }, (_, at) => message("a", "x", `${batch}-${at}-`.padEnd(500, "yz"))),
          );
        }
        const full = (await store.size()).bytes;
        expect(full).toBeGreaterThan(2 * megabyte);
        expect(await store.deleteHeaviest(200, full)).toBe(0);
        while ((await store.deleteHeaviest(200, full / 2)) > 0);
        const { bytes } = await store.size();
        expect(bytes).toBeLessThanOrEqual(full / 2);
        expect(bytes).toBeGreaterThan(full / 4);
        const left = await walk(store, { limit: null });
        expect(left.length).toBeGreaterThan(800);
        expect(left.at(-1)?.message.startsWith("7-499-")).toBe(true);
        expect((await walk(store, { filter: "7-123-" })).length).toBe(1);
        expect((await walk(store, { filter: "0-123-" })).length).toBe(0);
        expect(await walk(store, { skip: left.length })).toEqual([]);
        expect(await walk(store, { skip: left.length - 1 })).toEqual(left.slice(-1));
        while ((await store.deleteHeaviest(1_000, 0)) > 0);
        expect(await page(store, { skip: -3 })).toEqual({ next: null, items: [] });
        expect(await store.size()).toMatchObject({ oldest: null });
        await store.append([message("a", "x", "anew")]);
        expect(shown(await walk(store, { filter: "anew" }))).toEqual(["anew"]);
      }),
    );
  });
}

const devices = ["ab", "abc", "a", "A-1_x", "topics"];
const texts = [
  "temperature",
  '{"t":21.5,"state":"ok"}',
  "50% off",
  "100_000",
  "a_b",
  'a"b',
  "a'b",
  "a*b",
  "''",
  '""',
  "x AND y NOT z",
  "^(regex)$",
  "naïve café é éa",
  "Straße",
  "東京都",
  "東京",
  "😀",
  "😀😀😀",
  "a😀x",
  "before\0behind",
  "\0",
  "line\nbreak\ttab",
  "",
  "ab",
  "db/abc/x",
];
const names = [
  "",
  "temp",
  "temp/in",
  "temp/in/1",
  "temp/out",
  "temperature",
  "a.b",
  "é/東京",
  "50%/x_y",
  "//",
];

/** Records of every kind that a query could tell apart, over several times that do not ascend. */
function assorted(): DataMessage[] {
  const messages: DataMessage[] = [];
  let count = 0;
  for (const name of ["", "temp", "temp/in", "temp/in/1", "temp/out", "temperature", "a.b"]) {
    messages.push(message("topics", name, name, { timestamp: start }));
  }
  for (let round = 0; round < 6; round++) {
    for (const text of texts) {
      const device = devices[count % 4] ?? "ab";
      const name = names[(count * 7 + round) % names.length] ?? "temp";
      messages.push(
        message(device, name, `${text}${round % 2 === 0 ? "" : ` ${count}`}`, {
          timestamp: start + ((count * 37) % 100),
        }),
      );
      count++;
    }
    messages.push(message("ab", "binary", Buffer.from([0xff, 0xfe, round, 1, 2, 3])));
  }
  return messages;
}

const anyFilter = fc.oneof(
  fc.constantFrom(
    "a",
    "b",
    "1",
    "2",
    "ab",
    "db",
    "temp",
    "emp",
    "temperature",
    "ok",
    "state",
    "東京",
    "😀",
    '"',
    "_",
    "%",
    "/",
    "db/ab/",
    "/temp",
    "in/1",
  ),
  fc
    .record({ text: fc.constantFrom(...texts), from: fc.nat(8), length: fc.integer({ min: 1, max: 8 }) })
    .map(({ text, from, length }) =>
      [...text]
        .slice(from, from + length)
        .join("")
        .replaceAll("\0", ""),
    )
    .filter((text) => text.length > 0),
  fc.string({ minLength: 1, maxLength: 4 }).filter((text) => !text.includes("\0")),
);

const anyQuery: fc.Arbitrary<Query> = fc
  .record(
    {
      deviceId: fc.constantFrom(...devices, "nobody"),
      topic: fc.constantFrom(
        "#",
        "+",
        "temp",
        "temp/#",
        "temp/+",
        "+/in",
        "+/+/1",
        "+/#",
        "a.b",
        "é/#",
        "é/東京",
        "x",
      ),
      filter: anyFilter,
      since: fc.integer({ min: start - 1, max: start + 101 }),
      until: fc.integer({ min: start - 1, max: start + 101 }),
      order: fc.constantFrom("asc" as const, "desc" as const),
      skip: fc.oneof(fc.constant(0), fc.integer({ min: -20, max: 20 }), fc.integer({ min: -300, max: 300 })),
      limit: fc.oneof(fc.constant(null), fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 300 })),
    },
    { requiredKeys: [] },
  )
  .map(({ topic, ...query }) =>
    query.deviceId === undefined || topic === undefined ? query : { ...query, topic },
  );
