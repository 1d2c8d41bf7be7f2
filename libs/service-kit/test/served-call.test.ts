import { eventually } from "@devmesh/testkit/eventually";
import { startBuses, testLog } from "@devmesh/testkit/sample-mesh/buses";
import { everyMethod, greeter, greetings } from "@devmesh/testkit/sample-mesh/greeter";
import { describe, expect, test } from "@jest/globals";
import { natsConnection } from "../src/connection/nats-connection.ts";
import type { Logger } from "../src/logger.ts";
import { createMetrics } from "../src/metrics.ts";
import { createClient } from "../src/rpc/client.ts";
import { createCallContext } from "../src/rpc/context.ts";
import { serve } from "../src/rpc/serve.ts";
import { startTrace } from "../src/tracing/trace.ts";

/** Collects what would be written, by level. */
function recordingLog() {
  const lines: (Record<string, unknown> & { level: string })[] = [];
  const at = (level: string) => (fields: Record<string, unknown>) => void lines.push({ level, ...fields });
  const log = Object.assign(Object.create(testLog) as Logger, {
    debug: at("debug"),
    warn: at("warn"),
    error: at("error"),
    isLevelEnabled: () => true,
  });
  return { lines, log };
}

describe("a served call", () => {
  test("is logged and measured by its outcome, with the caller's trace and request id", async () => {
    await using buses = await startBuses();
    const { lines, log } = recordingLog();
    const metrics = createMetrics();
    const serving = await buses.connect("greeter", { log, metrics });
    const calling = await buses.connect("caller");
    serve(serving, greeter, greetings({ relay: () => Promise.reject(new Error("broken")) }));
    await serving.flush();
    const { greet, relay, wait } = createClient(calling, everyMethod);
    const trace = startTrace();
    const call = (timeoutMs = 30_000) => createCallContext({ timeoutMs, trace, requestId: "r-7" });
    await greet({ name: "Ada" }, call());
    const silent = () => undefined;
    await greet({ name: "nobody" }, call()).catch(silent);
    await greet({ name: "boor" }, call()).catch(silent);
    await calling[natsConnection].request("mesh.greeter.v1.greet", "{}", { timeout: 30_000 });
    await relay({ ms: 0 }, call()).catch(silent);
    await wait({ ms: 500 }, call(30)).catch(silent);
    await eventually(() => lines.length === 6);
    expect(lines.map(({ level, method, code }) => `${level} ${method} ${code}`)).toEqual([
      "debug greet ok",
      "debug greet not_found",
      "debug greet internal",
      "debug greet invalid_argument",
      "error relay internal",
      "warn wait deadline_exceeded",
    ]);
    expect(lines[0]).toMatchObject({ trace_id: trace.traceId, request_id: "r-7" });
    expect(lines[0]?.span_id).not.toBe(trace.spanId);
    expect(JSON.stringify(lines)).not.toContain("Ada");
    const { values } = await metrics.callSeconds.get();
    const counts = values.filter(({ metricName }) => metricName === "devmesh_call_duration_seconds_count");
    expect(counts.map(({ labels, value }) => `${labels.method} ${labels.code} ${value}`).sort()).toEqual([
      "greet internal 1",
      "greet invalid_argument 1",
      "greet not_found 1",
      "greet ok 1",
      "relay internal 1",
      "wait deadline_exceeded 1",
    ]);
  });
});
