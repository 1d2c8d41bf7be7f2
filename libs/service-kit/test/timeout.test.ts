import { setImmediate } from "node:timers/promises";
import { defineContract } from "@devmesh/contracts/contract";
import { calls } from "@devmesh/contracts/topology";
import { eventually } from "@devmesh/testkit/eventually";
import { startBuses, type TestBuses } from "@devmesh/testkit/sample-mesh/buses";
import { everyMethod, greeter, greetings } from "@devmesh/testkit/sample-mesh/greeter";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { headers } from "@nats-io/nats-core";
import { z } from "zod";
import type { Bus } from "../src/connection/bus.ts";
import { natsConnection } from "../src/connection/nats-connection.ts";
import { isReason, ServiceError } from "../src/errors.ts";
import { announce } from "../src/process/discovery.ts";
import { createClient } from "../src/rpc/client.ts";
import { createCallContext } from "../src/rpc/context.ts";
import { serve } from "../src/rpc/serve.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";

describe("a deadline", () => {
  let buses: TestBuses;
  let serving: Bus;
  let calling: Bus;
  const signals: AbortSignal[] = [];

  beforeAll(async () => {
    buses = await startBuses();
    serving = await buses.connect("greeter");
    calling = await buses.connect("caller");
    const inner = createClient(serving, everyMethod);
    serve(
      serving,
      greeter,
      greetings({
        // Ignores its signal on purpose.
        wait: ({ ms }, { signal }) => {
          signals.push(signal);
          return new Promise((resolve) => setTimeout(() => resolve({ waitedMs: ms }), ms).unref());
        },
        relay: async ({ ms }, context) => {
          if (ms > 0) return inner.relay({ ms: 0 }, context);
          return { remainingMs: context.deadline.remainingMs(), traceId: "", requestId: "" };
        },
      }),
    );
    await serving.flush();
  });
  afterAll(() => buses.stop());

  const outcome = (answer: Promise<unknown>) => answer.catch((error: unknown) => error);

  test("ends a call whose handler ignores it, and tells the handler", async () => {
    const startedAt = performance.now();
    const error = await outcome(
      createClient(calling, everyMethod).wait({ ms: 30_000 }, createCallContext({ timeoutMs: 150 })),
    );
    expect(error).toMatchObject({ code: "deadline_exceeded", reason: "deadline_exceeded" });
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    // The caller's deadline may expire first.
    await eventually(() => signals.at(-1)?.aborted);
    const counted = /devmesh_call_duration_seconds_count\{.*method="wait",code="deadline_exceeded"\} 1/;
    await eventually(async () => counted.test(await serving.metrics.registry.metrics()));
  });

  test("is inherited by nested calls, less what was spent", async () => {
    const { remainingMs } = await createClient(calling, everyMethod).relay(
      { ms: 1 },
      createCallContext({ timeoutMs: 4_000 }),
    );
    expect(remainingMs).toBeLessThanOrEqual(4_000);
    expect(remainingMs).toBeGreaterThan(0);
  });

  test("of the caller never exceeds the contract's", async () => {
    const { remainingMs } = await createClient(calling, everyMethod).relay(
      { ms: 0 },
      createCallContext({ timeoutMs: 60_000 }),
    );
    expect(remainingMs).toBeLessThanOrEqual(5_000);
  });

  test.each(["abc", "1e99", "-5", "1.5", "99999999999", " 5"])(
    "header of %j is refused as input",
    async (value) => {
      const wire = headers();
      wire.set("Mesh-Timeout-Ms", value);
      const reply = await calling[natsConnection].request("mesh.greeter.v1.greet", '{"name":"Ada"}', {
        timeout: 30_000,
        headers: wire,
      });
      // The client library trims blanks of a header, so that " 5" arrives as 5 ms, which is enough or too little.
      if (value !== " 5") expect(reply.json()).toMatchObject({ reason: "invalid_request" });
    },
  );

  test("that has passed sends nothing", async () => {
    const clock = new ManualClock();
    const call = createCallContext({ timeoutMs: 10, clock });
    await clock.advance(10);
    const before = calling[natsConnection].stats().outMsgs;
    const error = await outcome(createClient(calling, everyMethod).greet({ name: "Ada" }, call));
    expect(isReason(error, "deadline_exceeded")).toBe(true);
    expect(calling[natsConnection].stats().outMsgs).toBe(before);
  });

  test("leaves no timer behind once the context is disposed of", () => {
    const clock = new ManualClock();
    const call = createCallContext({ timeoutMs: 10, clock });
    expect(clock.pending).toBe(1);
    call[Symbol.dispose]();
    expect(clock.pending).toBe(0);
  });

  test("does not hold a caller that gave up", async () => {
    const gone = new AbortController();
    const call = createCallContext({ timeoutMs: 30_000, signal: gone.signal });
    const startedAt = performance.now();
    const answer = outcome(createClient(calling, everyMethod).wait({ ms: 30_000 }, call));
    gone.abort(new Error("the HTTP client went away"));
    expect(await answer).toBeInstanceOf(ServiceError);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});

describe("a service that hangs", () => {
  const patient = defineContract({
    service: "patient",
    version: 1,
    methods: {
      wait: {
        in: z.object({ ms: z.int() }),
        out: z.object({ waitedMs: z.number() }),
        deadlineMs: 60_000,
        idempotent: true,
        errors: {},
      },
    },
  });
  const waiting = calls(patient, ["wait"]);
  let buses: TestBuses;
  let middle: Bus;
  let outer: Bus;

  beforeAll(async () => {
    buses = await startBuses();
    middle = await buses.connect("middle");
    outer = await buses.connect("outer");
    const inner = createClient(middle, calls(patient, ["wait"]));
    const served = serve(
      middle,
      greeter,
      greetings({ wait: ({ ms }, context) => inner.wait({ ms }, context) }),
    );
    announce(middle, { description: "Calls the patient.", served: [served] });
    await middle.flush();
  });
  afterAll(() => buses.stop());

  /** A patient that answers its calls and pings, or only receives them. */
  async function startPatient(answers: boolean): Promise<AsyncDisposable> {
    const bus = await buses.connect("patient");
    if (answers) {
      const served = serve(bus, patient, {
        wait: async ({ ms }, { deadline, signal }) => {
          await deadline.clock.sleep(ms, signal);
          return { waitedMs: ms };
        },
      });
      announce(bus, { description: "Takes its time.", served: [served] });
    } else {
      for (const subject of ["$SRV.PING.patient", "mesh.patient.v1.wait"])
        bus[natsConnection].subscribe(subject, { callback: () => undefined });
    }
    await bus.flush();
    return { [Symbol.asyncDispose]: () => bus[natsConnection].close() };
  }

  const ask = (ms: number) =>
    createClient(outer, waiting).wait({ ms }, createCallContext({ timeoutMs: 50_000 }));
  const askNested = (ms: number, timeoutMs: number) =>
    createClient(outer, everyMethod).wait({ ms }, createCallContext({ timeoutMs }));
  /** Lets the event loop turn some times. */
  const afterTurns = async () => {
    for (let turn = 0; turn < 20; turn++) await setImmediate();
  };
  const silence = { reason: "deadline_exceeded", service: "patient" };

  test("is named long before the deadline, also by a service between", async () => {
    await using _ = await startPatient(false);
    const startedAt = performance.now();
    await Promise.all([
      expect(ask(40_000)).rejects.toMatchObject(silence),
      expect(askNested(40_000, 30_000)).rejects.toMatchObject(silence),
    ]);
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });

  test("is named after 2.5 s", async () => {
    await using _ = await startPatient(false);
    jest.useFakeTimers({ doNotFake: ["Date", "nextTick", "performance", "queueMicrotask", "setImmediate"] });
    try {
      const refused = ask(40_000).catch((error: unknown) => error);
      await jest.advanceTimersByTimeAsync(2_500);
      // A call that waits for longer would never settle, since no timer advances any more.
      expect(await Promise.race([refused, afterTurns()])).toMatchObject(silence);
    } finally {
      jest.useRealTimers();
    }
  });

  test("is not what takes long and answers pings: its calls go on", async () => {
    await using _ = await startPatient(true);
    expect(await Promise.all([ask(4_000), askNested(4_000, 30_000)])).toEqual([
      { waitedMs: 4_000 },
      { waitedMs: 4_000 },
    ]);
  });

  test("is named where the deadline of two calls ends the inner one", async () => {
    await using _ = await startPatient(true);
    await expect(askNested(20_000, 1_000)).rejects.toMatchObject(silence);
  });
});
