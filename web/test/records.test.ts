import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { describe, expect, test } from "@jest/globals";
import { createApiClient } from "../src/api/api-client.ts";
import { exportRecords, gatherBytes } from "../src/features/data/export-records.ts";
import { excerptOf, piecesOf } from "../src/features/data/match-marks.ts";
import { emptyList, mostRecords, withRecords } from "../src/features/data/record-list.ts";
import { readEarlier, readLater } from "../src/features/data/record-pages.ts";
import { selects } from "../src/features/data/record-selection.ts";
import { startHttpServer } from "./http-server.ts";
import { everything, record, recordsOf, startDataServer } from "./stored-records.ts";

const idsOf = (records: readonly DataRecord[]) => records.map(({ id }) => id);

/** All records, read backwards to the end. */
async function readBackwards(origin: string): Promise<readonly DataRecord[]> {
  const api = createApiClient({ origin, key: "k" });
  let list = emptyList;
  while (list.hasEarlier) {
    const page = await readEarlier(api, everything, list.records.at(-1) ?? null, AbortSignal.timeout(10_000));
    list = withRecords(list, page.records, page.hasEarlier);
  }
  return list.records;
}

describe("reading records backwards", () => {
  test("gives each once, newest first, also where a page ends within a millisecond", async () => {
    const stored = [...recordsOf(1, 150), ...recordsOf(151, 260, 200), ...recordsOf(261, 700)];
    await using server = await startDataServer(stored);
    expect(idsOf(await readBackwards(server.origin))).toEqual(idsOf(stored).reverse());
  });

  test("passes a millisecond that holds more than a page, and more than an answer", async () => {
    const stored = [...recordsOf(1, 30), ...recordsOf(31, 6_500, 40)];
    await using server = await startDataServer(stored);
    expect(idsOf(await readBackwards(server.origin))).toEqual(idsOf(stored).reverse());
  });

  test("tells what was stored later, but not when it is more than one answer holds", async () => {
    await using server = await startDataServer(recordsOf(1, 2_000));
    const api = createApiClient({ origin: server.origin, key: "k" });
    const later = await readLater(api, everything, 1_990, AbortSignal.timeout(10_000));
    expect(idsOf(later ?? [])).toEqual(idsOf(recordsOf(1_991, 2_000)));
    expect(await readLater(api, everything, 1, AbortSignal.timeout(10_000))).toBeNull();
  });
});

describe("a list of records", () => {
  test("holds each record once, however and in whatever order it comes", () => {
    const list = withRecords(emptyList, [record(2), record(3), record(3)]);
    expect(idsOf(withRecords(list, [record(1), record(4), record(2)]).records)).toEqual([4, 3, 2, 1]);
    expect(withRecords(list, [record(2)])).toBe(list);
  });

  test("lets the oldest go when it is full", () => {
    const list = withRecords(emptyList, recordsOf(1, mostRecords + 5), false);
    expect(list.records).toHaveLength(mostRecords);
    expect(list.records.at(-1)?.id).toBe(6);
    expect(list).toMatchObject({ hasEarlier: true, isFull: true });
    const large = { ...record(1), message: "x".repeat(40_000_000) };
    expect(idsOf(withRecords(emptyList, [large, { ...large, id: 2 }]).records)).toEqual([2]);
  });

  test("takes up what the selection asks for, as the server would", () => {
    expect(selects({ ...everything, filter: "celsius" }, record(1))).toBe(true);
    expect(selects({ ...everything, filter: "Celsius" }, record(1))).toBe(false);
    expect(selects({ ...everything, filter: "celsius" }, { ...record(1), encoding: "base64" })).toBe(false);
    expect(selects({ ...everything, device: "pump" }, record(1))).toBe(false);
    expect(selects({ ...everything, since: record(5).timestamp }, record(5))).toBe(true);
    expect(selects({ ...everything, until: record(5).timestamp }, record(5))).toBe(false);
  });
});

describe("what is shown of a payload", () => {
  test("marks each match and no other letter", () => {
    expect(piecesOf("aXbXX", "X").map(({ text, matches }) => (matches ? `[${text}]` : text))).toEqual([
      "a",
      "[X]",
      "b",
      "[X]",
      "[X]",
    ]);
    expect(piecesOf("abc", "")).toEqual([{ at: 0, text: "abc", matches: false }]);
  });

  test("is what surrounds the match of a long one", () => {
    const excerpt = excerptOf(`${"a".repeat(1_000)}needle${"b".repeat(1_000)}`, "needle");
    expect(excerpt).toContain("needle");
    expect(excerpt.length).toBeLessThan(400);
  });
});

describe("an export", () => {
  test("asks for the selection in its form, with the key in a header, and streams what comes", async () => {
    const seen: unknown[] = [];
    await using server = await startHttpServer((request, response) => {
      seen.push(request.url, request.headers.accept, request.headers.authorization);
      response.writeHead(200, { "Content-Type": "text/csv" });
      response.write("id\n");
      response.end("1\n");
    });
    const { target, parts } = gatherBytes(100);
    const api = createApiClient({ origin: server.origin, key: "secret" });
    await exportRecords(
      api,
      { ...everything, filter: "a&b" },
      "csv",
      target as WritableStream<Uint8Array>,
      AbortSignal.timeout(10_000),
    );
    expect(await new Blob([...parts]).text()).toBe("id\n1\n");
    expect(seen).toEqual(["/api/v2/data?filter=a%26b", "text/csv", "Bearer secret"]);
  });

  test("fails rather than fill the memory, and leaves nothing of it", async () => {
    await using server = await startHttpServer((_request, response) => response.end("x".repeat(1_000)));
    const { target, parts } = gatherBytes(100);
    const api = createApiClient({ origin: server.origin, key: "k" });
    await expect(
      exportRecords(
        api,
        everything,
        "ndjson",
        target as WritableStream<Uint8Array>,
        AbortSignal.timeout(10_000),
      ),
    ).rejects.toThrow("narrow the selection");
    expect(parts).toHaveLength(0);
  });
});
