import { createServer } from "node:http";
import { Gauge } from "prom-client";
import { withTimeout } from "../clock.ts";
import type { Metrics } from "../metrics.ts";
import { listen } from "./listen.ts";

/** What readiness depends on: throws, rejects or answers false while it is not there. */
export type ReadinessCheck = () => boolean | undefined | Promise<boolean | undefined> | Promise<void>;

/** What the server for operators shows. */
export interface OpsServerOptions {
  /** Name of the service, a label of what readiness measures. */
  readonly service: string;
  readonly host: string;
  readonly port: number;
  readonly metrics: Metrics;
  /** By name; each runs at each `/readyz` and `/metrics`. */
  readonly checks: ReadonlyMap<string, ReadinessCheck>;
  /** Longest wait for one check, in milliseconds. Default 2,000. */
  readonly checkMs?: number;
}

/** `/healthz`, `/readyz` and `/metrics` of one process (api.md, Operations). */
export interface OpsServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Listens on a port that is not the public one; rejects when it is taken. */
export async function startOpsServer(options: OpsServerOptions): Promise<OpsServer> {
  const { service, host, port, metrics, checks, checkMs = 2_000 } = options;
  new Gauge({
    name: "devmesh_readiness",
    help: "1 while a check of /readyz passes; the service is ready while all do.",
    labelNames: ["service", "check"],
    registers: [metrics.registry],
    async collect() {
      const failed = new Set(await readiness(checks, checkMs));
      this.reset();
      for (const check of checks.keys()) this.set({ service, check }, failed.has(check) ? 0 : 1);
    },
  });
  const server = createServer((request, response) => {
    const path = (request.url ?? "").split("?")[0];
    const send = (status: number, type: string, body: string) => {
      response.writeHead(status, { "content-type": type, "cache-control": "no-store" });
      response.end(request.method === "HEAD" ? undefined : body);
    };
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return send(405, "text/plain", "method not allowed\n");
    }
    if (path === "/healthz") return send(200, "application/json", '{"status":"ok"}\n');
    if (path === "/readyz") {
      void readiness(checks, checkMs).then((failed) =>
        send(
          failed.length === 0 ? 200 : 503,
          "application/json",
          `${JSON.stringify({ status: failed.length === 0 ? "ready" : "not ready", failed })}\n`,
        ),
      );
      return;
    }
    if (path === "/metrics") {
      metrics.registry.metrics().then(
        (text) => send(200, metrics.registry.contentType, text),
        () => send(500, "text/plain", "metrics are not available\n"),
      );
      return;
    }
    send(404, "text/plain", "not found\n");
  });
  const url = await listen(server, port, host);
  return {
    url,
    async close() {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** Names of the checks that do not pass. What they failed with stays inside. */
async function readiness(checks: ReadonlyMap<string, ReadinessCheck>, checkMs: number): Promise<string[]> {
  const outcomes = await Promise.all(
    [...checks].map(async ([name, check]) => ((await passes(check, checkMs)) ? null : name)),
  );
  return outcomes.filter((name) => name !== null);
}

async function passes(check: ReadinessCheck, checkMs: number): Promise<boolean> {
  const checked = (async () => {
    if ((await check()) === false) throw new Error("not ready");
  })();
  return await withTimeout(checkMs, checked).catch(() => false);
}
