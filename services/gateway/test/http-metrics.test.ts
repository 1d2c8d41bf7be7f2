import { createMetrics } from "@devmesh/service-kit/metrics";
import { describe, expect, test } from "@jest/globals";
import { createHttpMetrics, type EndedRequest } from "../src/http-metrics.ts";

const ended: EndedRequest = {
  route: "/api/v2/devices",
  method: "GET",
  status: 200,
  keyKind: "master",
  ms: 4,
  isStream: false,
};

describe("what a gateway tells discovery of its requests", () => {
  test("counts them with their time, an error for each answer of 5xx, and no stream", () => {
    const metrics = createHttpMetrics(createMetrics());
    for (const more of [{}, { status: 404 }, { status: 503, ms: 10 }, { isStream: true, ms: 3_600_000 }]) {
      metrics.began();
      metrics.ended({ ...ended, ...more });
    }
    expect(metrics.answered).toMatchObject({
      name: "http",
      requests: 3,
      errors: 1,
      processingNs: 18_000_000,
      lastError: "503",
    });
  });

  test("keeps routes, not paths, in its metrics", async () => {
    const metrics = createMetrics();
    const { began, ended: end } = createHttpMetrics(metrics);
    began();
    end({ ...ended, route: "/api/v2/devices/:id" });
    expect(await metrics.registry.metrics()).toContain(
      'devmesh_http_request_duration_seconds_count{route="/api/v2/devices/:id",method="GET",status="200",key="master"} 1',
    );
  });
});
