import { describe, expect, jest, test } from "@jest/globals";
import { ApiProblem } from "../src/api/api-problem.ts";
import { type DeviceOutcome, forEachDevice } from "../src/features/devices/bulk/for-each-device.ts";

const ids = Array.from({ length: 20 }, (_, at) => `device-${at}`);

describe("work on many devices", () => {
  test("goes on some at a time and tells each outcome, failures among them", async () => {
    let running = 0;
    let most = 0;
    const outcomes: DeviceOutcome[] = [];
    await forEachDevice({
      ids,
      concurrency: 4,
      act: async (id) => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        if (id === "device-3") throw new Error("offline");
        return id;
      },
      onOutcome: (outcome) => outcomes.push(outcome),
      signal: new AbortController().signal,
    });
    expect(most).toBe(4);
    expect(outcomes).toHaveLength(20);
    expect(outcomes.filter(({ kind }) => kind === "failed").map(({ id }) => id)).toEqual(["device-3"]);
  });

  test("takes up no further device once it is cancelled", async () => {
    const cancelling = new AbortController();
    const outcomes: DeviceOutcome[] = [];
    await forEachDevice({
      ids,
      concurrency: 2,
      act: async (_id, signal) => signal.throwIfAborted(),
      onOutcome: (outcome) => {
        outcomes.push(outcome);
        if (outcomes.length === 5) cancelling.abort();
      },
      signal: cancelling.signal,
    });
    // What the other worker had under way by then is reported as well.
    expect(outcomes.map(({ id }) => id)).toEqual(ids.slice(0, 6));
  });
});

describe("a device for which the gateway has no room", () => {
  const crowded = (seconds: string) => async () => {
    const response = new Response("{}", { status: 429, headers: { "Retry-After": seconds } });
    throw await ApiProblem.from(response);
  };

  test("is tried again when the gateway says that there may be room", async () => {
    jest.useFakeTimers();
    try {
      let tries = 0;
      const outcomes: DeviceOutcome[] = [];
      const ended = forEachDevice({
        ids: ["pump-1"],
        concurrency: 1,
        act: async () => (++tries === 1 ? crowded("7")() : "answered"),
        onOutcome: (outcome) => outcomes.push(outcome),
        signal: new AbortController().signal,
      });
      await jest.advanceTimersByTimeAsync(6_900);
      expect(tries).toBe(1);
      await jest.advanceTimersByTimeAsync(100);
      await ended;
      expect(outcomes).toEqual([{ id: "pump-1", kind: "done", result: "answered" }]);
    } finally {
      jest.useRealTimers();
    }
  });

  test("holds up no cancellation", async () => {
    const cancelling = new AbortController();
    const outcomes: DeviceOutcome[] = [];
    const ended = forEachDevice({
      ids,
      concurrency: 2,
      act: crowded("86400"),
      onOutcome: (outcome) => outcomes.push(outcome),
      signal: cancelling.signal,
    });
    cancelling.abort();
    await ended;
    expect(outcomes).toEqual([]);
  });
});
