import { startBuses, type TestBuses } from "@devmesh/testkit/sample-mesh/buses";
import { everyMethod, greeter, greetings } from "@devmesh/testkit/sample-mesh/greeter";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Bus } from "../src/connection/bus.ts";
import { natsConnection } from "../src/connection/nats-connection.ts";
import { isReason, ServiceError } from "../src/errors.ts";
import { createClient } from "../src/rpc/client.ts";
import { createCallContext } from "../src/rpc/context.ts";
import { type Served, serve } from "../src/rpc/serve.ts";
import { startTrace } from "../src/tracing/trace.ts";

describe("a call", () => {
  let buses: TestBuses;
  let serving: Bus;
  let calling: Bus;
  let served: Served;
  const flags: unknown[] = [];

  beforeAll(async () => {
    buses = await startBuses();
    serving = await buses.connect("greeter");
    calling = await buses.connect("caller");
    served = serve(
      serving,
      greeter,
      greetings({
        relay: async ({ ms }, context) => {
          flags.push(context.fromWebhook);
          if (ms === 5) await createClient(serving, everyMethod).relay({ ms: 6 }, context);
          if (ms === 1) throw new Error("secret detail");
          if (ms === 2) return { remainingMs: "not a number" } as never;
          if (ms === 3) throw "a string";
          if (ms === 4) await createClient(serving, everyMethod).greet({ name: "" }, context);
          const { deadline, trace, requestId = "" } = context;
          return { remainingMs: deadline.remainingMs(), traceId: trace.traceId, requestId };
        },
      }),
    );
    await serving.flush();
  });
  afterAll(() => buses.stop());

  const call = (timeoutMs = 30_000) => createCallContext({ timeoutMs });
  const failure = async (answer: Promise<unknown>) => {
    const error = await answer.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof ServiceError)) throw new Error("expected a ServiceError", { cause: error });
    return error;
  };

  test("answers with the parsed output", async () => {
    expect(await createClient(calling, everyMethod).greet({ name: "Ada" }, call())).toEqual({
      text: "hello Ada",
    });
  });

  test("answers the owner's bytes when they are asked for", async () => {
    const bytes = await createClient(calling, everyMethod).bytes.greet({ name: "Ada" }, call());
    expect(Buffer.from(bytes).toString()).toBe('{"text":"hello Ada"}');
  });

  test("answers an input with tens of thousands of unknown members by as many of them as a reply holds", async () => {
    const members = Array.from({ length: 60_000 }, (_, n) => [`member_${n}`, 1]);
    const reply = await calling[natsConnection].request(
      "mesh.greeter.v1.greet",
      JSON.stringify({ name: "Ada", ...Object.fromEntries(members) }),
      { timeout: 30_000 },
    );
    expect(reply.headers?.get("Nats-Service-Error-Code")).toBe("400");
    const { details } = reply.json<{ details: unknown[] }>();
    expect(details).toHaveLength(500);
    expect(details[0]).toEqual({ pointer: "/member_0", detail: "is not known here" });
  });

  test.each([
    [{}, "is required"],
    [{ name: 7 }, "must be a string"],
  ])("says what %j lacks in words of JSON", async (input, detail) => {
    const reply = await calling[natsConnection].request("mesh.greeter.v1.greet", JSON.stringify(input));
    expect(reply.json<{ details: unknown }>().details).toEqual([{ pointer: "/name", detail }]);
  });

  test("refuses an input that no call can carry, and sends nothing", async () => {
    const error = await failure(
      createClient(calling, everyMethod).greet({ name: "x".repeat(1_048_000) }, call()),
    );
    expect([error.code, error.reason]).toEqual(["invalid_argument", "invalid_request"]);
    expect(error.details).toEqual([{ pointer: "", detail: expect.stringContaining("1047552 bytes") }]);
  });

  test("answers an error whose details no reply can hold as internal, at once", async () => {
    const error = await failure(createClient(calling, everyMethod).greet({ name: "legion" }, call()));
    expect([error.code, error.reason]).toEqual(["internal", "internal"]);
  });

  test("carries a declared error with its code, sentence and details", async () => {
    const { greet, bytes } = createClient(calling, everyMethod);
    expect(await failure(greet({ name: "nobody" }, call()))).toMatchObject({
      code: "not_found",
      reason: "nobody_here",
      message: "There is nobody of that name.",
    });
    const error = await failure(bytes.greet({ name: "everybody" }, call()));
    expect(error).toMatchObject({ code: "resource_exhausted", reason: "too_many", details: { most: 3 } });
    expect(isReason(error, "nobody_here", "too_many")).toBe(true);
    expect(isReason(error, "nobody_here")).toBe(false);
  });

  test("lists every violation of the input with a JSON pointer", async () => {
    const bad = { name: "", again: { times: 0.5 }, nam: 1 } as unknown as { name: string };
    const error = await failure(createClient(calling, everyMethod).greet(bad, call()));
    expect(error).toMatchObject({ code: "invalid_argument", reason: "invalid_request" });
    expect((error.details as { pointer: string }[]).map(({ pointer }) => pointer).sort()).toEqual([
      "/again/times",
      "/nam",
      "/name",
    ]);
  });

  test("that is not JSON is refused by the service itself", async () => {
    const reply = await calling[natsConnection].request("mesh.greeter.v1.greet", "{nope", {
      timeout: 30_000,
    });
    expect(reply.headers?.get("Nats-Service-Error-Code")).toBe("400");
    expect(reply.headers?.get("Nats-Service-Error")).toBe("invalid_request");
    expect(reply.json()).toMatchObject({
      code: "invalid_argument",
      details: [{ pointer: "", detail: "is not JSON" }],
    });
  });

  test.each([1, 3])("whose handler throws (%s) is internal, without a word of the cause", async (ms) => {
    const reply = await calling[natsConnection].request("mesh.greeter.v1.relay", JSON.stringify({ ms }), {
      timeout: 30_000,
    });
    expect(reply.json()).toEqual({ code: "internal", reason: "internal" });
  });

  test("whose handler calls another one wrongly is internal, not the caller's fault", async () => {
    expect(await failure(createClient(calling, everyMethod).relay({ ms: 4 }, call()))).toMatchObject({
      reason: "internal",
    });
  });

  test("whose output breaks the contract is internal", async () => {
    expect(await failure(createClient(calling, everyMethod).relay({ ms: 2 }, call()))).toMatchObject({
      code: "internal",
      reason: "internal",
    });
  });

  test("whose reply is over 512 KB is internal, and one just below arrives", async () => {
    const { fill } = createClient(calling, everyMethod);
    expect((await failure(fill({ bytes: 512 * 1024 }, call()))).code).toBe("internal");
    expect((await fill({ bytes: 512 * 1024 - 11 }, call())).text).toHaveLength(512 * 1024 - 11);
  });

  test("hands on trace and request id", async () => {
    const trace = startTrace();
    const context = createCallContext({ timeoutMs: 30_000, trace, requestId: "r-1" });
    const answer = await createClient(calling, everyMethod).relay({ ms: 0 }, context);
    expect(answer).toMatchObject({ traceId: trace.traceId, requestId: "r-1" });
  });

  test("hands on whether a receiver of webhooks caused it, also to calls that it leads to", async () => {
    const { relay } = createClient(calling, everyMethod);
    for (const fromWebhook of [true, false]) {
      flags.length = 0;
      await relay({ ms: 5 }, createCallContext({ timeoutMs: 30_000, fromWebhook }));
      expect(flags).toEqual([fromWebhook || undefined, fromWebhook || undefined]);
    }
  });

  test("is counted by its method, errors too", () => {
    const greet = served.endpoints.find(({ name }) => name === "greet");
    expect(greet?.requests).toBeGreaterThan(3);
    expect(greet?.errors).toBeGreaterThan(2);
    expect(greet?.processingNs).toBeGreaterThan(0);
  });
});
