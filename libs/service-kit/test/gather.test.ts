import { expect, test } from "@jest/globals";
import { gather } from "../src/gather.ts";

const bounds = { maxItems: 3, maxCalls: 1 };

test("items of one turn share calls, each with at most so many, and get their answers", async () => {
  const calls: (readonly number[])[] = [];
  const double = gather({
    ...bounds,
    async ask(items: readonly number[]) {
      calls.push(items);
      return items.map((item) => 2 * item);
    },
  });
  expect(await Promise.all([1, 2, 3, 4, 5].map(double))).toEqual([2, 4, 6, 8, 10]);
  expect(calls).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
});

test("what comes while the calls before are under way goes together", async () => {
  const calls: (readonly number[])[] = [];
  const first = Promise.withResolvers<void>();
  const echo = gather({
    ...bounds,
    async ask(items: readonly number[]) {
      calls.push(items);
      if (calls.length === 1) await first.promise;
      return items;
    },
  });
  const one = echo(1);
  await new Promise(setImmediate);
  const two = echo(2);
  await new Promise(setImmediate);
  const three = echo(3);
  await new Promise(setImmediate);
  expect(calls).toEqual([[1]]);
  first.resolve();
  expect(await Promise.all([one, two, three])).toEqual([1, 2, 3]);
  expect(calls).toEqual([[1], [2, 3]]);
});

test("a call is bounded in bytes, unless one item has more", async () => {
  const calls: (readonly number[])[] = [];
  const echo = gather({
    ...bounds,
    maxBytes: 10,
    sizeOf: (bytes: number) => bytes,
    async ask(items: readonly number[]) {
      calls.push(items);
      return items;
    },
  });
  await Promise.all([6, 4, 1, 99, 2].map(echo));
  expect(calls).toEqual([[6, 4], [1], [99], [2]]);
});

test("what is not answered is asked again, and a failure rejects the items of its call alone", async () => {
  const calls: (readonly number[])[] = [];
  const echo = gather({
    ...bounds,
    async ask(items: readonly number[]) {
      calls.push(items);
      if (items.includes(4)) throw new Error("four");
      return items.slice(0, 2);
    },
  });
  const outcomes = await Promise.allSettled([1, 2, 3, 5, 4].map(echo));
  expect(outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : "failed"))).toEqual([
    1,
    2,
    "failed",
    "failed",
    "failed",
  ]);
  expect(calls).toEqual([
    [1, 2, 3],
    [3, 5, 4],
  ]);
});
