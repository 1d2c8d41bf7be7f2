import type { PrincipalKind } from "@devmesh/contracts/principal";
import type { Metrics } from "@devmesh/service-kit/metrics";
import { Gauge, Histogram } from "prom-client";

/** Measures requests by route pattern; a path as it was asked for is never a label. */
export interface HttpMetrics {
  began(): void;
  ended(route: string, method: string, status: number, keyKind: PrincipalKind | "none", ms: number): void;
}

/** Registers the gateway's metrics. */
export function createHttpMetrics({ registry }: Metrics): HttpMetrics {
  const seconds = new Histogram({
    name: "devmesh_http_request_duration_seconds",
    help: "Time to answer a request, by route.",
    labelNames: ["route", "method", "status", "key"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers: [registry],
  });
  const running = new Gauge({
    name: "devmesh_http_requests_running",
    help: "Requests being answered.",
    registers: [registry],
  });
  // Finding a labelled child costs more than observing: each is looked up once.
  const children = new Map<string, ReturnType<typeof seconds.labels>>();
  return {
    began: () => running.inc(),
    ended(route, method, status, keyKind, ms) {
      running.dec();
      const id = `${status} ${method} ${keyKind} ${route}`;
      let child = children.get(id);
      if (child === undefined) {
        child = seconds.labels(route, method, String(status), keyKind);
        children.set(id, child);
      }
      child.observe(ms / 1000);
    },
  };
}
