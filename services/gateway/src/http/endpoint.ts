import type { ServerResponse } from "node:http";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { continueTrace, traceFields, traceHeader } from "@devmesh/service-kit/tracing/trace";
import {
  type OpenSpan,
  type SpanDescription,
  type SpanEnd,
  startReceivedSpan,
  type Tracer,
} from "@devmesh/service-kit/tracing/tracer";
import type { Request } from "express";
import type { ConcurrencyLimit } from "./concurrency-limit.ts";
import { unlessKnown } from "./conditional.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import { ClientGone, Exchange, isStreamed, type PathParams, type Reply, writeReply } from "./exchange.ts";
import { RequestRefused } from "./gateway-errors.ts";
import type { HttpMetrics } from "./http-metrics.ts";
import { type ProblemAnswer, problemOf } from "./problem.ts";
import { shownTo } from "./session-reply.ts";

/** Bytes beyond which an answer is large. */
const largeAnswer = 64 * 1024;

export interface EndpointOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  readonly tracer: Tracer | undefined;
  readonly crossOrigin: CrossOrigin;
  /** Timeout for the calls of one request, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** For answers over 64 KB: they stay in memory until the client reads them. */
  readonly largeAnswers: ConcurrencyLimit;
  /** Whether the gateway is stopping: answers then close their connections. */
  readonly stopping: () => boolean;
  /** Requests that are not answered yet. */
  readonly running: Set<Exchange>;
}

export type PresentProblem = (exchange: Exchange, answer: ProblemAnswer) => Reply;

export type Endpoint = (request: Request, response: ServerResponse, params?: PathParams) => Promise<void>;

/**
 * Makes handlers of functions that answer an exchange: errors become problems; each request is logged and
 * measured once, under its route's pattern. Path and query are never logged.
 */
export function createEndpoints(options: EndpointOptions) {
  const { clock, log, metrics, tracer, crossOrigin, largeAnswers, stopping, running } = options;
  // No field of a request's line is secret, and redaction costs 7 % of the throughput.
  const accessLog = log.child({}, { redact: [] });
  const exchangeOptions = { clock, timeoutMs: options.requestTimeoutMs };

  return function endpoint(
    route: string,
    answer: (exchange: Exchange) => Reply | Promise<Reply>,
    present: PresentProblem = presentJson,
  ): Endpoint {
    return async (request, response, params = {}) => {
      const traceparent = trustedTraceparent(request);
      const span = tracer && startReceivedSpan(tracer, requestSpan(route, request), traceparent);
      const trace = span?.trace ?? continueTrace(traceparent);
      const exchange = new Exchange(request, response, params, trace, exchangeOptions);
      running.add(exchange);
      metrics.began();
      let failure: unknown;
      let release: (() => void) | undefined;
      const finish = (complete: boolean) => {
        running.delete(exchange);
        if (!complete) exchange.abort(new ClientGone());
        release?.();
        exchange.end();
        report(route, exchange, complete, failure, span);
      };
      response.once("close", () => finish(response.writableFinished));
      crossOrigin.allow(request, exchange.headers);
      if (stopping()) response.shouldKeepAlive = false;
      try {
        const reply = unlessKnown(exchange, await answer(exchange));
        if (response.destroyed) reply.release?.();
        else release = reply.release ?? acquireSlot(reply, exchange);
        await writeReply(exchange, shownTo(exchange.keyKind, reply));
        if (exchange.upgraded) finish(true);
      } catch (error) {
        failure = error;
        if (response.headersSent || response.destroyed) {
          response.destroy();
          return;
        }
        const problem = problemOf(error, exchange.requestId);
        await writeReply(exchange, shownTo(exchange.keyKind, present(exchange, problem)));
      }
    };
  };

  /** A slot for a large answer until the client has read it; streams have other limits. */
  function acquireSlot({ body, headers }: Reply, { keyId, principal }: Exchange): (() => void) | undefined {
    if (keyId === undefined || principal === undefined || isEventStream(headers)) return;
    const large = isStreamed(body) || (body !== undefined && body.length > largeAnswer);
    return large ? largeAnswers.acquire(keyId, principal.kind) : undefined;
  }

  function report(
    route: string,
    exchange: Exchange,
    complete: boolean,
    failure: unknown,
    span: OpenSpan | undefined,
  ): void {
    const { request, response, keyKind } = exchange;
    const ms = clock.monotonicMs() - exchange.startedAtMs;
    const status = exchange.upgraded ? 101 : response.headersSent ? response.statusCode : 0;
    const isStream = exchange.upgraded || isEventStream(exchange.headers);
    metrics.ended({ route, method: request.method, status, keyKind, ms, isStream });
    span?.end(endOfRequest(status, complete || isStream));
    const broken = failure !== undefined && isOurs(failure, status, response.headersSent && !complete);
    if (!broken && !accessLog.isLevelEnabled("info")) return;
    const line = {
      method: request.method,
      route,
      status,
      ms: Math.round(ms * 10) / 10,
      key_kind: keyKind,
      request_id: exchange.requestId,
      ...traceFields(exchange.trace),
      ...(complete ? undefined : { aborted: true }),
    };
    if (broken) log.error({ ...line, err: failure }, "request failed");
    else accessLog.info(line, "request");
  }
}

/**
 * The `traceparent` of a trusted proxy. A stranger's would decide which traces are kept, and join traces of others.
 */
function trustedTraceparent({ app, headers, socket }: Request): string | undefined {
  const traceparent = headers[traceHeader];
  if (typeof traceparent !== "string") return undefined;
  const isProxy: (address: string | undefined, hop: number) => boolean = app.get("trust proxy fn");
  return isProxy(socket.remoteAddress, 0) ? traceparent : undefined;
}

/** What is recorded of a request: of its path only the pattern, since a path or a query can hold a secret. */
function requestSpan(route: string, { method, protocol }: Request): SpanDescription {
  const isPattern = route.startsWith("/");
  return {
    name: isPattern ? `${method} ${route}` : method,
    kind: "server",
    attributes: {
      "http.request.method": method,
      "url.scheme": protocol,
      ...(isPattern ? { "http.route": route } : {}),
    },
  };
}

function endOfRequest(status: number, complete: boolean): SpanEnd {
  const errorType = status >= 500 ? String(status) : complete ? undefined : "aborted";
  return {
    attributes: status === 0 ? {} : { "http.response.status_code": status },
    ...(errorType === undefined ? {} : { errorType }),
  };
}

function isEventStream(headers: Reply["headers"]): boolean {
  return headers["Content-Type"]?.startsWith("text/event-stream") === true;
}

/** Whether an error is a fault of the mesh rather than of the caller. */
function isOurs(failure: unknown, status: number, cut: boolean): boolean {
  if (failure instanceof ClientGone || failure instanceof RequestRefused) return false;
  return cut || status === 500 || status === 503;
}

/** A problem as `application/problem+json` (RFC 9457). */
export function presentJson(_exchange: Exchange, { status, headers, problem }: ProblemAnswer): Reply {
  return {
    status,
    headers: { ...headers, "Content-Type": "application/problem+json" },
    body: JSON.stringify(problem),
  };
}
