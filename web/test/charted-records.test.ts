import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { describe, expect, test } from "@jest/globals";
import { createApiClient } from "../src/api/api-client.ts";
import { type ChartedNumbers, chartRecords, type RecordChart } from "../src/features/data/charted-records.ts";
import type { RecordChoice } from "../src/features/data/record-selection.ts";
import { everything, record, recordsOf, startDataServer } from "./stored-records.ts";
import { wholeSummary } from "./whole-summary.ts";

interface Charted {
  readonly chart: RecordChart;
  readonly changes: ChartedNumbers[];
  /** How many values the series of `celsius` has, and what they come to. */
  readonly counted: () => { readonly count: number; readonly sum: number };
}

function chartOf(origin: string, mostRecords = 100_000, selection: RecordChoice = everything): Charted {
  const changes: ChartedNumbers[] = [];
  const chart = chartRecords({
    api: createApiClient({ origin, key: "k" }),
    selection,
    mostRecords,
    onChange: (numbers) => changes.push(numbers),
  });
  const counted = () => {
    const summary = wholeSummary(changes.at(-1)?.topics.get("db/boiler/temperature"));
    return { count: summary?.count ?? 0, sum: Math.round((summary?.mean ?? 0) * (summary?.count ?? 0)) };
  };
  return { chart, changes, counted };
}

const soon = () => AbortSignal.timeout(20_000);
const sumOf = (records: readonly DataRecord[]) => records.reduce((sum, { id }) => sum + id, 0);

describe("the numbers of a chart", () => {
  test("count each record once, however many pages they come in, and are shown meanwhile", async () => {
    const stored = [...recordsOf(1, 3_000), ...recordsOf(3_001, 3_900, 3_000), ...recordsOf(3_901, 8_000)];
    await using server = await startDataServer(stored);
    const { chart, changes, counted } = chartOf(server.origin);
    await chart.read(soon());
    expect(counted()).toEqual({ count: 8_000, sum: sumOf(stored) });
    expect(changes.at(-1)).toMatchObject({ records: 8_000, isCut: false });
    expect(changes.length).toBeGreaterThan(1);
    expect(changes[0]?.records).toBeLessThan(1_000);
  });

  test("are those of the newest records where there are too many, which is told", async () => {
    await using server = await startDataServer(recordsOf(1, 3_000));
    const { chart, changes } = chartOf(server.origin, 1_000);
    await chart.read(soon());
    const shown = changes.at(-1);
    expect(shown).toMatchObject({ records: 1_000, isCut: true });
    expect(wholeSummary(shown?.topics.get("db/boiler/temperature"))).toMatchObject({
      least: 2_001,
      most: 3_000,
    });
  });

  test("end where large payloads make the pages small, not when the memory is full", async () => {
    const large = (id: number) => ({
      ...record(id),
      message: `{"celsius":${id},"text":"${"x".repeat(20_000)}"}`,
    });
    await using server = await startDataServer(Array.from({ length: 1_500 }, (_, at) => large(at + 1)));
    const { chart, changes } = chartOf(server.origin);
    await chart.read(soon());
    const sizes = changes.map(({ records }, at) => records - (changes[at - 1]?.records ?? 0));
    expect(Math.max(...sizes.slice(1))).toBeLessThan(150);
    expect(changes.at(-1)).toMatchObject({ records: 1_500, isCut: false });
  });

  test("take up what is stored meanwhile: once, also when a gap makes it be read again", async () => {
    const stored = recordsOf(1, 100);
    await using server = await startDataServer(stored);
    const { chart, counted } = chartOf(server.origin);
    chart.take([record(50)]);
    expect(counted().count).toBe(0);
    await chart.read(soon());
    stored.push(...recordsOf(101, 110));
    // The stream sent some, not in their order, and of one that was read before.
    chart.take([record(100), record(104), record(103)]);
    expect(counted().count).toBe(102);
    expect(await Promise.all([chart.catchUp(soon()), chart.catchUp(soon())])).toEqual([true, true]);
    chart.take([record(110), record(103)]);
    expect(counted()).toEqual({ count: 110, sum: sumOf(stored) });
    chart.take([record(111)]);
    expect(counted().count).toBe(111);
  });

  test("begin anew when too much was stored meanwhile", async () => {
    const stored = recordsOf(1, 10);
    await using server = await startDataServer(stored);
    const { chart } = chartOf(server.origin);
    await chart.read(soon());
    stored.push(...recordsOf(11, 5_000));
    expect(await chart.catchUp(soon())).toBe(false);
  });

  test("are found in what comes after an empty beginning", async () => {
    const stored: DataRecord[] = [];
    await using server = await startDataServer(stored);
    const { chart, changes, counted } = chartOf(server.origin);
    await chart.read(soon());
    expect(changes.at(-1)).toMatchObject({ records: 0, isCut: false });
    stored.push(record(7));
    await chart.catchUp(soon());
    chart.take([record(7), record(8)]);
    expect(counted()).toEqual({ count: 2, sum: 15 });
  });

  test("are none of records that the selection leaves out", async () => {
    await using server = await startDataServer([]);
    const { chart, counted } = chartOf(server.origin, 100, { ...everything, device: "boiler" });
    await chart.read(soon());
    chart.take([{ ...record(1), device_id: "pump", topic: "db/pump/temperature" }, record(2)]);
    expect(counted()).toEqual({ count: 1, sum: 2 });
  });
});
