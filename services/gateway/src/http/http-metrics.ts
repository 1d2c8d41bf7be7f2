import type { KeyKind } from "@devmesh/contracts/principal";
import { type Metrics, metricsOn } from "@devmesh/service-kit/metrics";

export interface EndedRequest {
  /** Pattern of the path; the path itself is never a label. */
  readonly route: string;
  readonly method: string;
  /** 0 when the client went away before an answer. */
  readonly status: number;
  readonly keyKind: KeyKind | "none";
  readonly ms: number;
  /** Whether it was a stream, whose duration says nothing. */
  readonly isStream: boolean;
}

export type HttpMetrics = ReturnType<typeof createHttpMetrics>;

/** Registers the metrics of requests. */
export function createHttpMetrics({ registry }: Metrics) {
  const { counter, gauge, histogram } = metricsOn(registry);
  const seconds = histogram(
    "devmesh_http_request_duration_seconds",
    "Time to answer a request, by route.",
    "route",
    "method",
    "status",
    "key",
  );
  const running = gauge("devmesh_http_requests_running", "Requests being answered.");
  const refused = counter(
    "devmesh_http_requests_refused_total",
    "Requests of addresses without tokens, refused before they were looked at; not among the answered ones.",
  );
  const connections = gauge("devmesh_http_connections", "Open connections.");
  const connectionsClosed = counter(
    "devmesh_http_connections_closed_total",
    "Connections that a bound closed, by the bound: of their address, or the total.",
    "bound",
  );
  /** Totals without streams, for discovery; errors are answers of 5xx. */
  const answered = {
    name: "http",
    subject: "http",
    queueGroup: "",
    requests: 0,
    errors: 0,
    processingNs: 0,
    lastError: "",
  };
  // Looking up a labelled child costs more than observing.
  const children = new Map<string, ReturnType<typeof seconds.labels>>();
  return {
    refused,
    connections,
    connectionsClosed,
    began: () => running.inc(),
    answered,
    ended({ route, method, status, keyKind, ms, isStream }: EndedRequest): void {
      running.dec();
      if (!isStream) {
        answered.requests++;
        answered.processingNs += Math.round(ms * 1e6);
        if (status >= 500) {
          answered.errors++;
          answered.lastError = String(status);
        }
      }
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
