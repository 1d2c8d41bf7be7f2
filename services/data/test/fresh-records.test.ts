import { expect, test } from "@jest/globals";
import { array, assert, asyncProperty, constantFrom, integer, option, record, uint8Array } from "fast-check";
import type { DataMessage, FollowedRecords, FollowRequest } from "../src/store/data-store.ts";
import { FreshRecords } from "../src/store/sqlite/fresh-records.ts";
import { tempStore } from "./temp-store.ts";

const message = (deviceId: string, name: string, payload: Uint8Array, isText: boolean): DataMessage => ({
  delivery: null,
  timestamp: 1_700_000_000_000,
  deviceId,
  topic: `db/${deviceId}/${name}`,
  payload,
  encoding: isText ? "text" : "base64",
});
const texts = (...all: string[]) => all.map((text) => message("a", "x", Buffer.from(text), true));
const request = { after: 0, limit: 1_000, maxBytes: 100_000 };

test("fresh records are followed as those that are read from the file", async () => {
  const devices = constantFrom("a", "ab", "b.c");
  const names = constantFrom("x", "x/y", "x/y/z", "température");
  const stored = record({ device: devices, name: names, bytes: uint8Array({ maxLength: 20 }) });
  const wanted = record({
    after: integer({ min: 0, max: 60 }),
    limit: integer({ min: 1, max: 20 }),
    maxBytes: integer({ min: 1, max: 2_000 }),
    topics: option(array(constantFrom("x", "x/#", "+/y", "x/y/+", "#"), { minLength: 1, maxLength: 3 })),
    deviceIds: option(array(devices, { minLength: 1, maxLength: 2 })),
  });
  await using opened = await tempStore();
  const { store } = opened;
  const never = new AbortController().signal;
  const known = await store.follow({ caller: "test", ...request, after: null }, never);
  let last = known.next;

  /** The records of all pages until the end. */
  async function walk(first: FollowRequest, read: (page: FollowRequest) => Promise<FollowedRecords>) {
    const found: unknown[] = [];
    for (let page = first; ; ) {
      const { records, next, atEnd } = await read(page);
      const { ids, times, topics, messages, base64 } = records;
      found.push(...ids.map((id, at) => [id, times[at], topics[at], messages[at], base64.includes(id)]));
      if (atEnd) return { found, next };
      page = { ...page, after: next };
    }
  }
  const property = asyncProperty(
    array(stored, { minLength: 1, maxLength: 40 }),
    wanted,
    async (batch, asked) => {
      const messages = batch.map(({ device, name, bytes }) => {
        const isText = bytes.length % 2 === 0;
        return message(
          device,
          name,
          isText ? Buffer.from(Buffer.from(bytes).toString("hex")) : bytes,
          isText,
        );
      });
      const begin = last;
      last = (await store.append(messages)).ids.at(-1) ?? last;
      const { topics, deviceIds, ...cut } = asked;
      const page: FollowRequest = {
        caller: "test",
        ...cut,
        after: Math.min(begin + asked.after, last),
        ...(topics !== null && { topics }),
        ...(deviceIds !== null && { deviceIds }),
      };
      const fresh = await walk(page, (one) => store.follow(one, never));
      const read = await walk(page, async ({ caller: _, ...one }) => {
        const followed = await store.reader.run("follow", one);
        if (followed === null) throw new Error("beyond the end");
        return followed;
      });
      expect(fresh).toEqual(read);
    },
  );
  await assert(property, { numRuns: 100 });
});

test("nothing is kept before somebody follows, nor once nobody has while the memory filled", () => {
  const fresh = new FreshRecords();
  fresh.add(texts("1"), [1]);
  expect(fresh.follow(request)).toBeNull();
  fresh.add(texts("2", "3"), [2, null]);
  expect(fresh.follow({ ...request, after: 1 })).toMatchObject({ next: 2, atEnd: true });
  expect(fresh.follow({ ...request, after: 0 })).toBeNull();
  expect(fresh.follow({ ...request, after: 3 })).toBeNull();
  const large = texts(...Array(9).fill("x".repeat(1024 ** 2)));
  const ids = (from: number) => large.map((_, at) => from + at);
  fresh.add(large, ids(3));
  // The older half is gone.
  expect(fresh.follow({ ...request, after: 2 })).toBeNull();
  expect(fresh.follow({ ...request, after: 11 })).toMatchObject({ next: 11, atEnd: true });
  fresh.add(large, ids(12));
  fresh.add(large, ids(21));
  fresh.add(texts("4"), [30]);
  expect(fresh.follow({ ...request, after: 29 })).toBeNull();
});

test("records of a deleted device are forgotten", () => {
  const fresh = new FreshRecords();
  fresh.follow(request);
  fresh.add([message("a", "x", Buffer.from("1"), true), message("b", "x", Buffer.from("2"), true)], [1, 2]);
  fresh.forget("b");
  expect(fresh.follow(request)).toMatchObject({ records: { messages: ["1"] }, next: 2, atEnd: true });
});
