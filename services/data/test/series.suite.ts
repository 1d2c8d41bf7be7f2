import { maxNumbersOfMessage, maxSeriesOfDevice } from "@devmesh/contracts/model/series";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { edgesOf } from "../src/numbers/spans.ts";
import { joinedTotals, type SeriesTotals, totalsOf } from "../src/numbers/totals.ts";
import type { DataMessage, DataStore } from "../src/store/data-store.ts";
import type { SeriesSource } from "../src/store/series-store.ts";
import type { StoreUnderTest } from "./data-store.suite.ts";

const never = new AbortController().signal;
const start = Date.parse("2026-03-28T00:00:00.000Z");
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];

/** A number that a device published. */
export interface Sample {
  readonly deviceId: string;
  readonly at: number;
  readonly value: number;
}

export function sampleMessage({ deviceId, at, value }: Sample): DataMessage {
  return {
    delivery: null,
    timestamp: at,
    deviceId,
    topic: `db/${deviceId}/temp`,
    payload: Buffer.from(JSON.stringify({ celsius: value, on: value > 0, name: "x" })),
    encoding: "text",
  };
}

/** A part that took longer than half of its lease is given up, and done again. */
async function rollUpAll(store: DataStore): Promise<void> {
  const rollUp = () =>
    store.rollUp().catch((error: unknown) => {
      if (isStoreUnavailable(error)) return "elsewhere";
      throw error;
    });
  await eventually(async () => {
    let outcome = await rollUp();
    while (outcome === "more") outcome = await rollUp();
    return outcome === "done";
  });
}

export function readSpans(
  store: DataStore,
  deviceId: string,
  edges: readonly number[],
  source: SeriesSource,
  pointer = "/celsius",
) {
  const key = { deviceId, topic: `db/${deviceId}/temp`, pointer };
  return store.readSpans({ ...key, caller: "test", edges, source, maxRecords: 100_000 }, never);
}

/** What a reading of all samples, in the order of storing, gives. */
export function naive(
  samples: readonly Sample[],
  deviceId: string,
  edges: readonly number[],
): (SeriesTotals | null)[] {
  return edges.slice(1).map((until, span) => {
    let totals: SeriesTotals | null = null;
    for (const { deviceId: id, at, value } of samples)
      if (id === deviceId && at >= (edges[span] ?? 0) && at < until)
        totals = joinedTotals(totals, totalsOf(value, at));
    return totals;
  });
}

const everyOf: Readonly<Record<SeriesSource, readonly string[]>> = {
  records: ["PT7M", "PT90S"],
  minutes: ["PT5M", "PT35M"],
  hours: ["PT1H", "PT5H", "P1D", "P3D", "P1W"],
};

const sampleOf = fc.record({
  deviceId: fc.constantFrom("pump", "fan"),
  // Over a change of summer time, mostly in few hours, and in no order.
  at: fc
    .oneof(fc.integer({ min: 0, max: 4 * hour }), fc.integer({ min: 0, max: 4 * day }))
    .map((ms) => start + ms),
  value: fc.integer({ min: -1_000, max: 1_000 }),
});
const stepOf = fc.oneof(
  { weight: 3, arbitrary: fc.array(sampleOf, { minLength: 1, maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constant("roll up" as const) },
);
const questionOf = fc.record({
  source: fc.constantFrom<SeriesSource>("records", "minutes", "hours"),
  which: fc.nat(),
  from: fc.integer({ min: -hour, max: 4 * day }),
  lengthMs: fc.integer({ min: 1, max: day }),
  tz: fc.constantFrom("UTC", "Europe/Berlin", "America/New_York"),
});

/** The numbers of any store. */
export function describeSeries(
  name: string,
  open: () => Promise<StoreUnderTest>,
  { runs = 60 }: { readonly runs?: number } = {},
): void {
  describe(`series of ${name}`, () => {
    let under: StoreUnderTest;
    let store: DataStore;
    beforeAll(async () => {
      under = await open();
      ({ store } = under);
    });
    afterAll(() => under.dispose());

    test("are those of all records, before, while and after they are rolled up, for any spans", async () => {
      let run = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.array(stepOf, { maxLength: 8 }),
          fc.array(questionOf, { maxLength: 6 }),
          async (steps, questions) => {
            // Other devices in each run, since the store is shared.
            const prefix = `r${run++}-`;
            const samples: Sample[] = [];
            for (const step of steps) {
              if (step === "roll up") await store.rollUp();
              else {
                const batch = step.map((sample) => ({ ...sample, deviceId: prefix + sample.deviceId }));
                samples.push(...batch);
                await store.append(batch.map(sampleMessage));
              }
            }
            for (const { source, which, from, lengthMs, tz } of questions) {
              const choices = everyOf[source];
              const every = choices[which % choices.length] ?? "";
              const edges = edgesOf({ from: start + from, until: start + from + lengthMs, every, tz });
              const deviceId = `${prefix}pump`;
              expect(await readSpans(store, deviceId, edges, source)).toEqual(
                naive(samples, deviceId, edges),
              );
            }
          },
        ),
        { numRuns: runs },
      );
    });

    test("have numbers and booleans of JSON at any depth, not of other texts", async () => {
      const payloads = [
        '{"a":{"b":[1,true,"2",null]},"c/d":3}',
        "4.5",
        "true",
        '"6"',
        "x",
        "{",
        "1e999",
        "NaN",
        "-Infinity",
        '"NaN"',
        "[".repeat(5_000),
      ];
      const messages = payloads.map(
        (payload): DataMessage => ({
          ...sampleMessage({ deviceId: "shapes", at: start, value: 0 }),
          payload: Buffer.from(payload),
        }),
      );
      await store.append(messages);
      await rollUpAll(store);
      const { series } = await store.listSeries("shapes", "test", never);
      expect(series.map(({ pointer, last }) => [pointer, last])).toEqual([
        ["", 1],
        ["/a/b/0", 1],
        ["/a/b/1", 1],
        ["/c~1d", 3],
      ]);
      expect(await readSpans(store, "shapes", [start, start + hour], "hours", "")).toEqual([
        { count: 2, min: 1, max: 4.5, sum: 5.5, first: 4.5, firstAt: start, last: 1, lastAt: start },
      ]);
    });

    test("beyond 2^53 are the nearest doubles, and a message of 256 KB of numbers has its first ones", async () => {
      const full = `[${"9007199254740993,".repeat(15_000)}0]`;
      await store.append([
        { ...sampleMessage({ deviceId: "full", at: start, value: 0 }), payload: Buffer.from(full) },
      ]);
      await rollUpAll(store);
      const { series } = await store.listSeries("full", "test", never);
      expect(series).toHaveLength(maxNumbersOfMessage);
      expect(series.map(({ last }) => last)).toEqual(series.map(() => 2 ** 53));
    });

    test("are the first of a device and of a message, and say how many numbers are left out", async () => {
      const payloadOf = (first: number, numbers: number) =>
        Buffer.from(
          JSON.stringify(
            Object.fromEntries(
              Array.from({ length: numbers }, (_, at) => [`n${String(first + at).padStart(6, "0")}`, at]),
            ),
          ),
        );
      const messageOf = (deviceId: string, first: number, numbers: number): DataMessage => ({
        ...sampleMessage({ deviceId, at: start, value: 0 }),
        payload: payloadOf(first, numbers),
      });
      // A device that makes up 100,000 pointers.
      const many = Array.from({ length: 3_125 }, (_, at) =>
        messageOf("many", at * maxNumbersOfMessage, maxNumbersOfMessage),
      );
      const beside = Array.from({ length: 50 }, (_, at) => ({
        deviceId: "beside",
        at: start + at,
        value: at,
      }));
      await store.append([...many, messageOf("wide", 0, 50), ...beside.map(sampleMessage)]);
      await rollUpAll(store);
      const { series, leftOut } = await store.listSeries("many", "test", never);
      expect([series.length, series.at(-1)?.pointer, leftOut]).toEqual([
        maxSeriesOfDevice,
        "/n000199",
        100_000 - maxSeriesOfDevice,
      ]);
      expect((await store.listSeries("wide", "test", never)).series).toHaveLength(maxNumbersOfMessage);
      await store.append([messageOf("many", 200, 1)]);
      const edges = [start, start + hour];
      expect(await readSpans(store, "many", edges, "hours", "/n000200")).toEqual([null]);
      expect(await readSpans(store, "beside", edges, "hours")).toEqual(naive(beside, "beside", edges));
    });

    test("of a clock that jumps back are those of all records", async () => {
      const back: Sample[] = [];
      const edges = Array.from({ length: 5 }, (_, at) => start + at * hour);
      // From 03:20 to 02:20, over the end of a span that was rolled up already.
      for (const [nth, at] of [3.2 * hour, 3.3 * hour, 2.3 * hour, 2.4 * hour, 3.3 * hour].entries()) {
        const sample = { deviceId: "back", at: start + at, value: nth };
        back.push(sample);
        await store.append([sampleMessage(sample)]);
        await rollUpAll(store);
        for (const source of ["hours", "records"] as const)
          expect(await readSpans(store, "back", edges, source)).toEqual(naive(back, "back", edges));
      }
    });

    test("of a device go with it, also where they are rolled up at the same time", async () => {
      const samples = Array.from({ length: 500 }, (_, at) => ({
        deviceId: "gone",
        at: start + at * minute,
        value: at,
      }));
      await store.append(samples.map(sampleMessage));
      const rolling = rollUpAll(store);
      await store.refuseDevice("gone");
      while ((await store.deleteRecordsOf("gone", 100)) > 0);
      while ((await store.deleteSeriesOf("gone", 3)) > 0);
      await store.finishPurge("gone");
      await rolling;
      await rollUpAll(store);
      expect((await store.listSeries("gone", "test", never)).series).toEqual([]);
      expect(await readSpans(store, "gone", [start, start + day], "hours")).toEqual([null]);
    });

    test("lose old buckets, five minutes before hours, and the device that has most loses its oldest hours", async () => {
      const ofDevice = (deviceId: string, hours: number) =>
        Array.from({ length: hours }, (_, at) =>
          sampleMessage({ deviceId, at: start + at * hour, value: 1 }),
        );
      await store.append([...ofDevice("heavy", 72), ...ofDevice("light", 2)]);
      await rollUpAll(store);
      const counted = async (deviceId: string, source: "minutes" | "hours") => {
        const width = source === "hours" ? hour : 5 * minute;
        const edges = Array.from({ length: (4 * day) / width + 1 }, (_, at) => start + at * width);
        return (await readSpans(store, deviceId, edges, source))?.filter((span) => span !== null).length;
      };
      await store.expireBuckets({ minutes: start + 2 * day, hours: start + day }, never);
      expect([await counted("heavy", "minutes"), await counted("heavy", "hours")]).toEqual([24, 49]);
      await store.shrinkSeries(0, never);
      expect([await counted("heavy", "hours"), await counted("light", "hours")]).toEqual([0, 0]);
    });

    test("are not read record by record where there are too many", async () => {
      const samples = Array.from({ length: 50 }, (_, at) => ({
        deviceId: "dense",
        at: start + at,
        value: at,
      }));
      await store.append(samples.map(sampleMessage));
      const query = { deviceId: "dense", topic: "db/dense/temp", pointer: "/celsius", caller: "test" };
      const edges = [start, start + minute];
      expect(await store.readSpans({ ...query, edges, source: "records", maxRecords: 49 }, never)).toBeNull();
      expect(
        await store.readSpans({ ...query, edges, source: "records", maxRecords: 50 }, never),
      ).toHaveLength(1);
    });
  });
}
