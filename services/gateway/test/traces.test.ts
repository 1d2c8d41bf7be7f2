import { ServiceError } from "@devmesh/service-kit/errors";
import { openTracer } from "@devmesh/service-kit/tracing/open-tracer";
import { eventually } from "@devmesh/testkit/eventually";
import { testLog } from "@devmesh/testkit/sample-mesh/buses";
import { startTraceCollector, type TraceCollector } from "@devmesh/testkit/trace-collector";
import { expect, test } from "@jest/globals";
import { GatewayEnv } from "../src/env.ts";
import { secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

/** Runs work against a traced gateway with a proxy before it, and waits for the spans of its requests. */
async function traced(
  work: (gateway: Fixture) => Promise<void>,
  TRUST_PROXY = "loopback",
): Promise<TraceCollector> {
  const collector = await startTraceCollector();
  const env = GatewayEnv.parse({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  const tracer = await openTracer(env, "gateway", testLog);
  if (tracer === undefined) throw new Error("no tracer was opened");
  await using gateway = await startFixture({ tracer, env: { TRUST_PROXY } });
  await work(gateway);
  await tracer.close();
  return collector;
}

const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
const requests = ({ spans }: TraceCollector) => spans.filter(({ attributes }) => "url.scheme" in attributes);

test("a request is a span of its route, and its log line has the span's id", async () => {
  let line: Record<string, unknown> = {};
  await using collector = await traced(async (gateway) => {
    await gateway.fetch("/api/v2/devices/pump?filter=of%20a%20customer", { headers: { traceparent } });
    const written = await eventually(() =>
      gateway
        .log()
        .split("\n")
        .find((one) => one.includes('"msg":"request"')),
    );
    line = JSON.parse(written);
  });
  const [request, ...others] = requests(collector);
  expect(others).toEqual([]);
  expect(request).toMatchObject({
    service: "devmesh-gateway",
    name: "GET /api/v2/devices/:id",
    kind: "server",
    traceId,
    parentId: "b7ad6b7169203331",
    failed: false,
  });
  expect(request?.attributes).toMatchObject({
    "http.request.method": "GET",
    "http.route": "/api/v2/devices/:id",
    "url.scheme": "http",
    "http.response.status_code": line.status,
  });
  expect(line).toMatchObject({ trace_id: traceId, span_id: request?.spanId });
  // The gateway also calls for its history, at each full minute.
  const calls = collector.spans.filter((span) => span.kind === "client" && span.traceId === traceId);
  expect(calls.length).toBeGreaterThan(0);
  for (const call of calls) expect(call).toMatchObject({ parentId: request?.spanId });
  for (const secret of [...Object.values(secrets), "of a customer", "of%20a"])
    expect(collector.received()).not.toContain(secret);
});

test.each(["off", "10.0.0.0/8"])(
  "a stranger's traceparent decides neither the trace nor whether it is kept, with TRUST_PROXY=%s",
  async (trustProxy) => {
    await using collector = await traced(async (gateway) => {
      await gateway.fetch("/api/v2/devices/pump", {
        headers: { traceparent: traceparent.replace(/01$/, "00"), "x-forwarded-for": "10.0.0.1" },
      });
    }, trustProxy);
    const [request, ...others] = requests(collector);
    expect(others).toEqual([]);
    expect(request).toMatchObject({ name: "GET /api/v2/devices/:id" });
    expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
    expect(collector.received()).not.toContain("b7ad6b7169203331");
  },
);

test("a request fails by its status, and one of an unknown path has no route", async () => {
  await using collector = await traced(async (gateway) => {
    gateway.fakes.devices.listDevices = () => Promise.reject(ServiceError.of("unavailable"));
    expect((await gateway.fetch("/api/v2/devices")).status).toBe(503);
    expect((await gateway.fetch("/api/v2/nothing/secret-path")).status).toBe(404);
    await eventually(() => gateway.log().split('"msg":"request').length === 3);
  });
  const ended = requests(collector).map(({ name, failed, attributes }) => ({
    name,
    failed,
    status: attributes["http.response.status_code"],
    type: attributes["error.type"],
    route: attributes["http.route"],
  }));
  expect(ended).toEqual([
    { name: "GET /api/v2/devices", failed: true, status: 503, type: "503", route: "/api/v2/devices" },
    { name: "GET", failed: false, status: 404, type: undefined, route: undefined },
  ]);
  expect(collector.received()).not.toContain("secret-path");
});
