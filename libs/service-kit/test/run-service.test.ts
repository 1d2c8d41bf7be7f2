import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { subscribesTo } from "@devmesh/contracts/topology";
import { eventually } from "@devmesh/testkit/eventually";
import { visits } from "@devmesh/testkit/sample-mesh/broker";
import { startBuses, type TestBuses } from "@devmesh/testkit/sample-mesh/buses";
import { everyMethod } from "@devmesh/testkit/sample-mesh/greeter";
import { startTcpProxy } from "@devmesh/testkit/tcp-proxy";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { startTraceCollector } from "@devmesh/testkit/trace-collector";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { subscribe } from "../src/events/subscription.ts";
import type { LauncherMessage } from "../src/process/run-service.ts";
import { createClient } from "../src/rpc/client.ts";
import { createCallContext } from "../src/rpc/context.ts";

interface RunningService {
  readonly process: ChildProcess;
  /** Its first message to its launcher. */
  readonly told: Promise<LauncherMessage>;
  readonly ended: Promise<{ code: number | null }>;
  output(): string;
}

async function streamEnd(stream: Readable | null): Promise<void> {
  if (stream !== null && !stream.readableEnded) await once(stream, "end");
}

describe("a service's process", () => {
  let buses: TestBuses;
  const started: ChildProcess[] = [];
  beforeAll(async () => {
    buses = await startBuses({ jetstream: true });
  });
  afterEach(() => {
    for (const child of started.splice(0)) child.kill("SIGKILL");
  });
  afterAll(() => buses.stop());

  function start(env: Record<string, string> = {}): RunningService {
    const child = fork(new URL("./greeter-service.ts", import.meta.url), {
      env: { PATH: process.env.PATH, NATS_URL: buses.server.url, LOG_LEVEL: "info", ...env },
      execArgv: ["--disable-warning=ExperimentalWarning"],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    started.push(child);
    let output = "";
    child.stdout?.on("data", (chunk) => (output += chunk));
    child.stderr?.on("data", (chunk) => (output += chunk));
    // Not `close`: it is not emitted once the channel to the child was disconnected.
    const ended = Promise.all([once(child, "exit"), streamEnd(child.stdout), streamEnd(child.stderr)]);
    return {
      process: child,
      told: once(child, "message").then(([message]) => message as LauncherMessage),
      ended: ended.then(([[code]]) => ({ code })),
      output: () => output,
    };
  }

  async function ready(env: Record<string, string> = {}) {
    const service = start(env);
    const message = await service.told;
    if (message.type !== "ready") throw new Error(service.output());
    return { ...service, ops: message.ops };
  }

  const call = () => createCallContext({ timeoutMs: 30_000 });

  test("tells its launcher when it is ready, and answers health, readiness and metrics", async () => {
    const { ops } = await ready();
    expect((await fetch(`${ops}/healthz`)).status).toBe(200);
    expect(await (await fetch(`${ops}/readyz`)).json()).toEqual({ status: "ready", failed: [] });
    const client = createClient(await buses.connect("caller"), everyMethod);
    expect(await client.greet({ name: "Ada" }, call())).toEqual({ text: "hello Ada" });
    const metrics = await fetch(`${ops}/metrics`);
    expect(metrics.headers.get("content-type")).toContain("text/plain");
    const text = await metrics.text();
    expect(text).toContain(
      'devmesh_call_duration_seconds_count{service="greeter",method="greet",code="ok"} 1',
    );
    expect(text).toContain("process_cpu_seconds_total");
    expect(text).toContain('devmesh_readiness{service="greeter",check="started"} 1');
    expect(text).toContain('devmesh_readiness{service="greeter",check="bus"} 1');
    expect(Number(/^devmesh_event_loop_active_seconds_total (.+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
    expect((await fetch(`${ops}/nothing`)).status).toBe(404);
    expect((await fetch(`${ops}/healthz`, { method: "POST" })).status).toBe(405);
  });

  test("exports spans as its environment says, what it has at its stop, too", async () => {
    await using collector = await startTraceCollector();
    const service = await ready({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-api-key=of%20mine",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=from-attributes,deployment.environment.name=test",
    });
    await createClient(await buses.connect("caller"), everyMethod).greet({ name: "Ada" }, call());
    service.process.kill("SIGTERM");
    expect(await service.ended).toEqual({ code: 0 });
    expect(collector.spans).toMatchObject([
      { name: "greeter/greet", kind: "server", service: "from-attributes" },
    ]);
    expect(collector.headers["x-api-key"]).toBe("of mine");
    expect(collector.received()).toContain("deployment.environment.name");
  });

  test.each([
    ["unless", {}, false],
    ["if", { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:1/v1/traces" }, true],
  ])("loads no OpenTelemetry SDK %s a collector is named", async (_, env, loads) => {
    await using folder = await tempFolder();
    const service = await ready({ ...env, NODE_V8_COVERAGE: folder.path });
    service.process.kill("SIGTERM");
    await service.ended;
    const [report = ""] = readdirSync(folder.path);
    const scripts = readFileSync(join(folder.path, report), "utf8");
    expect(scripts).toContain("service-kit/src/process/run-service.ts");
    expect(scripts.includes("@opentelemetry/sdk-trace")).toBe(loads);
  });

  test("on SIGTERM turns readiness red, finishes running calls, closes the store, and exits 0", async () => {
    const service = await ready();
    const caller = await buses.connect("caller");
    const begun = Promise.withResolvers<void>();
    subscribe(
      caller,
      subscribesTo(visits, ["visited"]),
      { visited: () => begun.resolve() },
      { mode: "each" },
    );
    await caller.flush();
    const running = createClient(caller, everyMethod).wait({ ms: 3_000 }, call());
    await begun.promise;
    service.process.kill("SIGTERM");
    await eventually(async () => (await fetch(`${service.ops}/readyz`)).status === 503);
    await eventually(() =>
      createClient(caller, everyMethod)
        .wait({ ms: 1 }, call())
        .then(
          () => false,
          (error) => error.reason === "unavailable",
        ),
    );
    expect(await running).toEqual({ waitedMs: 3_000 });
    expect(await service.ended).toEqual({ code: 0 });
    const log = service.output();
    expect(log.indexOf("stop was called")).toBeLessThan(log.indexOf("store closed"));
  });

  test("does not wait longer than DRAIN_MS for running calls", async () => {
    const service = await ready({ DRAIN_MS: "50" });
    const caller = await buses.connect("caller");
    const begun = Promise.withResolvers<void>();
    subscribe(
      caller,
      subscribesTo(visits, ["visited"]),
      { visited: () => begun.resolve() },
      { mode: "each" },
    );
    await caller.flush();
    const running = createClient(caller, everyMethod)
      .wait({ ms: 60_000 }, createCallContext({ timeoutMs: 60_000 }))
      .catch((error) => error);
    await begun.promise;
    service.process.kill("SIGTERM");
    expect(await running).toMatchObject({ code: "unavailable" });
    expect(await service.ended).toEqual({ code: 0 });
  });

  test("ends when its launcher is gone", async () => {
    const service = await ready();
    service.process.disconnect();
    expect(await service.ended).toEqual({ code: 0 });
    expect(service.output()).toContain("store closed");
  });

  test("that cannot start says so in one line and to its launcher, and exits 1", async () => {
    const service = start({ FAIL: "start" });
    expect(await service.told).toEqual({ type: "failed", message: "the store is damaged" });
    expect(await service.ended).toEqual({ code: 1 });
    const fatal = service
      .output()
      .split("\n")
      .filter((line) => line.includes('"fatal"'));
    expect(fatal).toHaveLength(1);
    expect(fatal[0]).toContain("greeter could not start: the store is damaged");
  });

  test("with a wrong environment names each wrong variable and exits 1", async () => {
    const service = start({ OPS_PORT: "sEcReT", DRAIN_MS: "-1" });
    expect(await service.ended).toEqual({ code: 1 });
    expect(
      service
        .output()
        .trim()
        .split("\n")
        .map((line) => line.split(" ")[0])
        .sort(),
    ).toEqual(["DRAIN_MS", "OPS_PORT"]);
    expect(service.output()).not.toContain("sEcReT");
  });

  test("ends with code 1 on an error that nobody caught", async () => {
    const service = start({ FAIL: "later" });
    expect(await service.ended).toEqual({ code: 1 });
    expect(service.output()).toContain("nobody catches this");
  });

  test("waits for a broker that is not up yet, and can be stopped meanwhile", async () => {
    const service = start({ NATS_URL: "nats://127.0.0.1:1" });
    await eventually(() => service.output().includes("waiting for the broker"));
    service.process.kill("SIGTERM");
    expect(await service.ended).toEqual({ code: 0 });
  });

  test("that is told to stop while it starts is never said to be ready", async () => {
    const service = start({ FAIL: "stopped" });
    expect(await service.ended).toEqual({ code: 0 });
    expect(service.output()).not.toContain('"ready"');
    // What the start had opened meanwhile is closed.
    expect(service.output()).toContain("store closed");
  });

  test.each(["stall", "cut"] as const)("exits with 0 when its broker is lost (%s)", async (lose) => {
    await using proxy = await startTcpProxy(buses.server.port);
    const service = await ready({ NATS_URL: `nats://127.0.0.1:${proxy.port}`, DRAIN_MS: "5000" });
    proxy[lose]();
    service.process.kill("SIGTERM");
    expect(await service.ended).toEqual({ code: 0 });
    expect(service.output()).toContain("store closed");
  });

  test("is not ready while the broker is away, and is again when it is back", async () => {
    const service = await ready();
    await buses.server.kill();
    await eventually(async () => (await fetch(`${service.ops}/readyz`)).status === 503);
    const metrics = await (await fetch(`${service.ops}/metrics`)).text();
    expect(metrics).toContain('devmesh_readiness{service="greeter",check="bus"} 0');
    await buses.server.restart();
    await eventually(async () => (await fetch(`${service.ops}/readyz`)).status === 200);
  });
});
