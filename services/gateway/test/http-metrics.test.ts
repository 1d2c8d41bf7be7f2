import { createMetrics } from "@devmesh/service-kit/metrics";
import { eventually } from "@devmesh/testkit/eventually";
import { describe, expect, test } from "@jest/globals";
import { createHttpMetrics, type EndedRequest } from "../src/http/http-metrics.ts";
import { startFixture } from "./gateway-fixture.ts";

const ended: EndedRequest = {
  route: "/api/v2/devices",
  method: "GET",
  status: 200,
  keyKind: "master",
  ms: 4,
  isStream: false,
};

describe("totals of the requests, for discovery", () => {
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

  test.each(["/api/v2/notify", "/api/v2/mesh"])(
    "leaves out who listens to %s, for as long as it does",
    async (path) => {
      await using mesh = await startFixture();
      const leaving = new AbortController();
      const { signal } = leaving;
      const answer = await mesh.fetch(path, { headers: { accept: "text/event-stream" }, signal });
      expect(answer.headers.get("content-type")).toBe("text/event-stream");
      leaving.abort();
      await eventually(() => mesh.log().includes(`"route":"${path}"`));
      expect(mesh.answered.requests).toBe(0);
      await (await mesh.fetch("/api/v2/mqtt")).json();
      await eventually(() => mesh.answered.requests === 1);
    },
  );

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
