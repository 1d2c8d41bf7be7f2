import { expect, test } from "@jest/globals";
import { TokenBuckets } from "../src/token-buckets.ts";

const taken = (buckets: TokenBuckets, atMs: number, count: number) =>
  Array.from({ length: count }, () => buckets.tryTake("pump", atMs)).filter(Boolean).length;

test("a bucket fills with time, which never goes back", () => {
  const buckets = new TokenBuckets({ size: 20, refill: 10, maxBuckets: 10 });
  expect(taken(buckets, 0, 30)).toBe(20);
  expect(taken(buckets, 500, 30)).toBe(5);
  expect(taken(buckets, 100, 30)).toBe(0);
  expect(taken(buckets, 60_000, 30)).toBe(20);
});

test("each key has its own bucket", () => {
  const buckets = new TokenBuckets({ size: 1, refill: 1, maxBuckets: 10 });
  expect(["a", "a", "b"].map((key) => buckets.tryTake(key, 0))).toEqual([true, false, true]);
});

test("a key below its rate is never refused", () => {
  const buckets = new TokenBuckets({ size: 20, refill: 10, maxBuckets: 10 });
  const times = Array.from({ length: 5_000 }, (_, n) => n * 110);
  expect(times.every((atMs) => buckets.tryTake("pump", atMs))).toBe(true);
});

test("a debt is paid first, where debts are allowed", () => {
  const [strict, lending] = [false, true].map(
    (allowDebt) => new TokenBuckets({ size: 1, refill: 1, maxBuckets: 10, allowDebt }),
  );
  strict?.take("a", 0, 5);
  lending?.take("a", 0, 5);
  expect([strict?.tokens("a", 1_000), lending?.tokens("a", 1_000)]).toEqual([1, -3]);
});

test("the least recently used bucket is forgotten", () => {
  const buckets = new TokenBuckets({ size: 1, refill: 1, maxBuckets: 2 });
  for (const key of ["a", "b", "a", "c"]) buckets.take(key, 0);
  expect(buckets.count).toBe(2);
  expect(["a", "b", "c"].map((key) => buckets.tokens(key, 0))).toEqual([0, 1, 0]);
});
