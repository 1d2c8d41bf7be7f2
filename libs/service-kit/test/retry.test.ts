import { expect, test } from "@jest/globals";
import { retry } from "../src/retry.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";

const failing = (times: number, clock: ManualClock, at: number[]) => async () => {
  at.push(clock.monotonicMs());
  if (at.length <= times) throw new Error(`failure ${at.length}`);
  return "done";
};

test("waits twice as long after each failure, up to the longest wait", async () => {
  const clock = new ManualClock();
  const at: number[] = [];
  const started = clock.monotonicMs();
  const done = retry(failing(4, clock, at), { firstMs: 100, longestMs: 300, isRetried: () => true, clock });
  await clock.advance(0);
  await clock.advance(2_000);
  expect(await done).toBe("done");
  const times = [started, ...at];
  const waits = at.slice(1).map((time, n) => time - (times[n + 1] ?? 0));
  for (const [n, wanted] of [100, 200, 300, 300].entries()) {
    expect(waits[n]).toBeGreaterThanOrEqual(0.75 * wanted);
    expect(waits[n]).toBeLessThanOrEqual(1.25 * wanted);
  }
});

test("throws the error that is not retried, or the last one when the signal aborts", async () => {
  const clock = new ManualClock();
  const options = { firstMs: 100, longestMs: 100, clock };
  const isRetried = (_: unknown, failures: number) => failures < 2;
  const refused = retry(failing(9, clock, []), { ...options, isRetried });
  const rejection = expect(refused).rejects.toThrow("failure 2");
  await clock.advance(0);
  await clock.advance(1_000);
  await rejection;
  const stopping = new AbortController();
  const stopped = retry(failing(9, clock, []), {
    ...options,
    isRetried: () => true,
    signal: stopping.signal,
  });
  const end = expect(stopped).rejects.toThrow("failure 1");
  await clock.advance(0);
  stopping.abort();
  await end;
});
