import { subscribesTo } from "@devmesh/contracts/topology";
import { eventually } from "@devmesh/testkit/eventually";
import { freePort } from "@devmesh/testkit/free-port";
import { letters, visits } from "@devmesh/testkit/sample-mesh/broker";
import { startBuses, type TestBuses, testLog } from "@devmesh/testkit/sample-mesh/buses";
import { everyMethod, greeter, greetings } from "@devmesh/testkit/sample-mesh/greeter";
import {
  type CollectedSpan,
  startTraceCollector,
  type TraceCollector,
} from "@devmesh/testkit/trace-collector";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Bus } from "../src/connection/bus.ts";
import { createPublisher, type Publisher } from "../src/events/publisher.ts";
import { subscribe } from "../src/events/subscription.ts";
import { createLogger, type Logger } from "../src/logger.ts";
import { ServiceEnv } from "../src/process/env.ts";
import { consumeQueue } from "../src/queue/consumer.ts";
import { createProducer } from "../src/queue/producer.ts";
import { createClient } from "../src/rpc/client.ts";
import { createCallContext } from "../src/rpc/context.ts";
import { serve } from "../src/rpc/serve.ts";
import { openTracer } from "../src/tracing/open-tracer.ts";
import { parseTraceparent, startTrace } from "../src/tracing/trace.ts";
import { traceStore } from "../src/tracing/trace-store.ts";
import { recordSpan, type Tracer } from "../src/tracing/tracer.ts";

const request = { name: "GET /", kind: "server", attributes: { "http.route": "/" } } as const;

describe("a tracer", () => {
  let buses: TestBuses;
  let collector: TraceCollector;
  const open: Tracer[] = [];
  beforeAll(async () => {
    buses = await startBuses({ jetstream: true });
  });
  afterAll(() => buses.stop());
  beforeEach(async () => {
    collector = await startTraceCollector();
  });
  afterEach(async () => {
    await exportAll();
    await collector[Symbol.asyncDispose]();
  });

  async function tracerOf(service: string, env: Record<string, string> = {}, log: Logger = testLog) {
    const tracer = await openTracer(
      ServiceEnv.parse({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env }),
      service,
      log,
    );
    if (tracer === undefined) throw new Error("no tracer was opened");
    open.push(tracer);
    return tracer;
  }

  async function busOf(service: string, env: Record<string, string> = {}): Promise<Bus> {
    return buses.connect(service, { tracer: await tracerOf(service, env) });
  }

  /** Ends the tracers, which sends what they have. */
  async function exportAll(): Promise<void> {
    await Promise.all(open.splice(0).map((tracer) => tracer.close()));
  }

  /** The spans as lines, each below its parent. */
  function tree(spans: readonly CollectedSpan[], parentId = "", depth = 0): string[] {
    return spans
      .filter((span) => span.parentId === parentId)
      .flatMap(({ service, kind, name, spanId }) => [
        `${"  ".repeat(depth)}${service} ${kind} ${name}`,
        ...tree(spans, spanId, depth + 1),
      ]);
  }

  test("is not opened without an endpoint, nor when it is disabled", async () => {
    expect(await openTracer(ServiceEnv.parse({}), "greeter", testLog)).toBeUndefined();
    const disabled = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SDK_DISABLED: "true" };
    expect(await openTracer(ServiceEnv.parse(disabled), "greeter", testLog)).toBeUndefined();
  });

  test("records calls, events, jobs and store queries of a request as one trace", async () => {
    const serving = await busOf("greeter");
    const calling = await busOf("caller");
    const listening = await busOf("listener");
    const store = traceStore(
      serving.tracer,
      { size: 1, find: async (id: string) => `found ${id}` },
      { system: "sqlite", collection: "guests" },
    );
    const publisher: Publisher<typeof visits> = await createPublisher(serving, visits);
    const letterBox = await createProducer(serving, letters);
    const contexts: unknown[] = [];
    const served = serve(
      serving,
      greeter,
      greetings({
        async greet(_, context) {
          await publisher.visited({ id: "guest", at: 1 }, { call: context });
          await publisher.visited({ id: "guest", at: 2 }, { call: context });
          await letterBox.enqueue({ to: "guest" }, { call: context });
          return { text: await store.find("guest") };
        },
      }),
    );
    const subscription = subscribe(
      listening,
      subscribesTo(visits, ["visited"]),
      { visited: (_, { trace }) => void contexts.push(trace) },
      { mode: "each" },
    );
    const worker = await consumeQueue(listening, letters, async (_, { trace }) => void contexts.push(trace));
    await Promise.all([serving.flush(), listening.flush()]);
    expect(store.size).toBe(1);
    await store.find("nobody in particular");
    await recordSpan(calling.tracer, request, undefined, async (trace) => {
      using call = createCallContext({ timeoutMs: 30_000, trace });
      await createClient(calling, everyMethod).greet({ name: "Ada" }, call);
    });
    await eventually(() => contexts.length === 3);
    await Promise.all([worker.stop(), subscription.stop(), served.drain(1_000)]);
    await exportAll();
    expect(new Set(collector.spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(tree(collector.spans).sort()).toEqual(
      [
        "devmesh-caller server GET /",
        "  devmesh-caller client greeter/greet",
        "    devmesh-greeter server greeter/greet",
        "      devmesh-greeter client find guests",
        "      devmesh-greeter producer send greeter.visited",
        "        devmesh-listener consumer process greeter.visited",
        "      devmesh-greeter producer send greeter.visited",
        "        devmesh-listener consumer process greeter.visited",
        "      devmesh-greeter producer send letters",
        "        devmesh-listener consumer process letters",
      ].sort(),
    );
    const own = new Set(collector.spans.map(({ spanId }) => spanId));
    for (const context of contexts) expect(own).toContain((context as { spanId: string }).spanId);
    const attributes = (name: string) => collector.spans.find((span) => span.name === name)?.attributes;
    expect(attributes("GET /")).toEqual({ "http.route": "/" });
    expect(attributes("greeter/greet")).toEqual({ "rpc.system.name": "nats", "rpc.method": "greeter/greet" });
    expect(attributes("find guests")).toEqual({
      "db.system.name": "sqlite",
      "db.operation.name": "find",
      "db.collection.name": "guests",
    });
    expect(attributes("send letters")).toEqual({
      "messaging.system": "nats",
      "messaging.operation.name": "send",
      "messaging.operation.type": "send",
      "messaging.destination.name": "letters",
    });
    expect(collector.received()).not.toContain("Ada");
    expect(collector.received()).not.toContain('guest"');
  });

  test("tells a call that failed from one that was refused", async () => {
    const serving = await busOf("greeter");
    const broken = greetings({ relay: () => Promise.reject(new Error("secret detail")) });
    const served = serve(serving, greeter, broken);
    await serving.flush();
    const client = createClient(await buses.connect("caller"), everyMethod);
    using call = createCallContext({ timeoutMs: 30_000 });
    await expect(client.greet({ name: "nobody" }, call)).rejects.toThrow();
    await expect(client.relay({ ms: 1 }, call)).rejects.toThrow();
    await served.drain(1_000);
    await exportAll();
    expect(collector.spans.map(({ name, failed, attributes }) => ({ name, failed, attributes }))).toEqual([
      {
        name: "greeter/greet",
        failed: false,
        attributes: {
          "rpc.system.name": "nats",
          "rpc.method": "greeter/greet",
          "rpc.response.status_code": "not_found",
        },
      },
      {
        name: "greeter/relay",
        failed: true,
        attributes: {
          "rpc.system.name": "nats",
          "rpc.method": "greeter/relay",
          "rpc.response.status_code": "internal",
          "error.type": "internal",
        },
      },
    ]);
    expect(collector.received()).not.toContain("secret");
  });

  test("keeps the id of a trace that begins at its caller, and records no parent for it", async () => {
    const tracer = await tracerOf("caller");
    const start = startTrace();
    const passedOn = await recordSpan(tracer, request, start, async (trace) => trace);
    await exportAll();
    expect(passedOn.traceId).toBe(start.traceId);
    expect(collector.spans).toMatchObject([
      { traceId: start.traceId, spanId: passedOn.spanId, parentId: "", name: "GET /" },
    ]);
  });

  test("exports nothing of a trace that its caller does not keep, and passes that on", async () => {
    const tracer = await tracerOf("caller");
    const parent = parseTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00") ?? undefined;
    const passedOn = await recordSpan(tracer, request, parent, async (trace) => trace);
    await exportAll();
    expect(passedOn).toMatchObject({ traceId: parent?.traceId, sampled: false });
    expect(passedOn.spanId).not.toBe(parent?.spanId);
    expect(collector.spans).toEqual([]);
  });

  test.each([
    ["always_off", "1", 0],
    ["traceidratio", "0", 0],
    ["parentbased_traceidratio", "0", 1],
    ["parentbased_always_off", "1", 1],
    ["parentbased_always_on", "0", 2],
    ["always_on", "0", 2],
  ])("samples as %s with %s", async (sampler, ratio, kept) => {
    const tracer = await tracerOf("caller", {
      OTEL_TRACES_SAMPLER: sampler,
      OTEL_TRACES_SAMPLER_ARG: ratio,
    });
    const sampled = parseTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") ?? undefined;
    tracer.startSpan(request, sampled).end();
    tracer.startSpan(request).end();
    await exportAll();
    expect(collector.spans.length).toBe(kept);
  });

  test("logs a collector that is away once, and is closed in bounded time", async () => {
    const lines: string[] = [];
    const log = createLogger({
      service: "caller",
      level: "info",
      destination: { write: (line) => void lines.push(line) },
    });
    const url = `http://127.0.0.1:${await freePort()}`;
    // How long an export is tried; the library reads it when the tracer is opened.
    process.env.OTEL_EXPORTER_OTLP_TIMEOUT = "1000";
    const tracer = await tracerOf("caller", { OTEL_EXPORTER_OTLP_ENDPOINT: url }, log);
    delete process.env.OTEL_EXPORTER_OTLP_TIMEOUT;
    for (let count = 0; count < 5_000; count++) tracer.startSpan(request).end();
    await eventually(() => lines.length > 0);
    await closedInTime(tracer);
    expect(lines.length).toBe(1);
    expect(lines[0]).toContain("the collector of traces takes no spans");
  });

  test("does not wait long for a collector that never answers", async () => {
    await using hanging = await startTraceCollector({ answers: false });
    const tracer = await tracerOf("caller", { OTEL_EXPORTER_OTLP_ENDPOINT: hanging.url });
    tracer.startSpan(request).end();
    await closedInTime(tracer);
  });

  /** The library alone waits ten seconds for an answer. */
  async function closedInTime(tracer: Tracer): Promise<void> {
    const startedAt = performance.now();
    await tracer.close();
    expect(performance.now() - startedAt).toBeLessThan(6_000);
  }
});
