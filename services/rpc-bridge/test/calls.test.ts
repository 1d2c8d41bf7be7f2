import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describe, expect, test } from "@jest/globals";
import { type CallOutcome, createInFlightCalls, type InFlightCalls } from "../src/calls/in-flight-calls.ts";

function table(options: { maxInFlight?: number; ids?: number[] } = {}) {
  const clock = new ManualClock();
  const ids = options.ids?.values();
  const calls = createInFlightCalls({
    clock,
    maxInFlight: options.maxInFlight ?? 100,
    ...(ids ? { randomId: () => ids.next().value ?? 0 } : {}),
  });
  return { clock, calls };
}

function open(calls: InFlightCalls, deviceId: string, timeoutMs = 1_000) {
  const call = calls.open(deviceId, timeoutMs);
  if (call === null) throw new Error("the table is full");
  return call;
}

const result = (value: string): CallOutcome & { kind: "result" } => ({ kind: "result", result: value });

describe("calls in flight", () => {
  test("two hundred of them, answered in another order, each get their own answer", async () => {
    const { calls } = table({ maxInFlight: 200 });
    const open200 = Array.from({ length: 200 }, () => open(calls, "pump"));
    expect(new Set(open200.map(({ id }) => id)).size).toBe(200);
    for (const { id } of open200.toReversed())
      expect(calls.settle("pump", id, result(`to ${id}`))).toBe(true);
    for (const { id, outcome } of open200) expect(await outcome).toEqual(result(`to ${id}`));
    expect(calls.size).toBe(0);
  });

  test("ids are integers of 31 bits, none of them 0", () => {
    const { calls } = table();
    for (let i = 0; i < 100; i++) {
      const { id } = open(calls, "pump");
      expect(Number.isInteger(id) && id >= 1 && id < 2 ** 31).toBe(true);
    }
  });

  test("an id in flight is not given to another call", () => {
    const { calls } = table({ ids: [5, 5, 5, 6] });
    expect(open(calls, "pump").id).toBe(5);
    expect(open(calls, "valve").id).toBe(6);
  });

  test("a reply from another device is ignored", async () => {
    const { calls } = table();
    const call = open(calls, "pump");
    expect(calls.settle("valve", call.id, result("forged"))).toBe(false);
    expect(calls.settle("pump", call.id, result("true"))).toBe(true);
    expect(await call.outcome).toEqual(result("true"));
  });

  test("a second reply is ignored, as is a late one", async () => {
    const { calls, clock } = table();
    const first = open(calls, "pump");
    calls.settle("pump", first.id, result("first"));
    expect(calls.settle("pump", first.id, result("second"))).toBe(false);
    const late = open(calls, "pump", 100);
    await clock.advance(100);
    expect(calls.settle("pump", late.id, result("late"))).toBe(false);
    expect(await late.outcome).toEqual({ kind: "timeout" });
  });

  test("each ends at its own time", async () => {
    const { calls, clock } = table();
    const ended: string[] = [];
    for (const ms of [300, 100, 200]) void open(calls, "pump", ms).outcome.then(() => ended.push(`${ms}`));
    await clock.advance(99);
    expect(ended).toEqual([]);
    await clock.advance(1);
    expect(ended).toEqual(["100"]);
    await clock.advance(200);
    expect(ended).toEqual(["100", "200", "300"]);
  });

  test.each(["offline", "deleted"] as const)(
    "all of a device that is %s end at once, and no others",
    async (why) => {
      const { calls, clock } = table();
      const gone = [open(calls, "pump"), open(calls, "pump")];
      const other = open(calls, "valve");
      calls.endOf("pump", why);
      for (const { outcome } of gone) expect(await outcome).toEqual({ kind: why });
      expect(calls.size).toBe(1);
      expect(clock.pending).toBe(1);
      calls.settle("valve", other.id, result("here"));
      expect(await other.outcome).toEqual(result("here"));
    },
  );

  test("no more of them wait than may", () => {
    const { calls } = table({ maxInFlight: 2 });
    const first = open(calls, "pump");
    open(calls, "pump");
    expect(calls.open("valve", 1_000)).toBeNull();
    first.abandon();
    expect(calls.open("valve", 1_000)).not.toBeNull();
  });

  test("an abandoned one leaves no timer and is not settled by a reply", async () => {
    const { calls, clock } = table();
    const call = open(calls, "pump");
    call.abandon();
    call.abandon();
    expect(clock.pending).toBe(0);
    expect(calls.settle("pump", call.id, result("x"))).toBe(false);
  });

  test("all of them end when the process stops, and so does each that comes after", async () => {
    const { calls } = table();
    const before = [open(calls, "pump"), open(calls, "valve")];
    calls.endAll();
    for (const { outcome } of [...before, open(calls, "pump")])
      expect(await outcome).toEqual({ kind: "restarting" });
    expect(calls.size).toBe(0);
  });
});
