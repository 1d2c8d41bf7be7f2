import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import type { Request, Response } from "express";
import type { Places } from "./concurrency-limit.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import { Exchange } from "./exchange.ts";
import { RequestRefused } from "./gateway-errors.ts";
import type { HttpMetrics } from "./http-metrics.ts";
import { type ProblemAnswer, problemOf } from "./problem.ts";
import type { Reply } from "./reply.ts";
import { ClientGone } from "./request-body.ts";
import { isStreamed, writeReply } from "./write-reply.ts";

/** Length from which on an answer is large. */
const largeAnswer = 64 * 1024;

/** What every endpoint works with. */
export interface EndpointOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  readonly crossOrigin: CrossOrigin;
  /** Time for the calls of one request, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** For answers over 64 KB, which a client that does not read them leaves in memory. */
  readonly largeAnswers: Places;
  /** Whether the gateway is stopping: answers then end their connections. */
  readonly stopping: () => boolean;
}

/** Turns an error into the answer to it; default: a problem in JSON. */
export type PresentProblem = (exchange: Exchange, answer: ProblemAnswer) => Reply;

/** An Express handler. */
export type Endpoint = (request: Request, response: Response) => Promise<void>;

/**
 * Makes Express handlers of functions that answer an exchange: errors become problems, and each request is logged and
 * measured once, under its route's pattern. The path and the query as they were asked for are never logged.
 */
export function createEndpoints(options: EndpointOptions) {
  const { clock, log, metrics, crossOrigin, largeAnswers, stopping } = options;
  // A request's line is made of the fields below alone, none of them secret: searching each for secrets costs 7 %.
  const accessLog = log.child({}, { redact: [] });
  const exchangeOptions = { clock, timeoutMs: options.requestTimeoutMs };

  return function endpoint(
    route: string,
    answer: (exchange: Exchange) => Reply | Promise<Reply>,
    present: PresentProblem = presentJson,
  ): Endpoint {
    return async (request, response) => {
      const exchange = new Exchange(request, response, exchangeOptions);
      metrics.began();
      let failure: unknown;
      let leave: (() => void) | undefined;
      const finish = (complete: boolean) => {
        if (!complete) exchange.abandon();
        leave?.();
        exchange.end();
        report(route, exchange, complete, failure);
      };
      response.once("close", () => finish(response.writableFinished));
      crossOrigin.allow(exchange);
      if (stopping()) exchange.headers.Connection = "close";
      try {
        const reply = await answer(exchange);
        if (!response.destroyed) leave = placeOf(reply, exchange);
        await writeReply(exchange, reply);
        if (exchange.upgraded) finish(true);
      } catch (error) {
        failure = error;
        if (response.headersSent || response.destroyed) {
          response.destroy();
          return;
        }
        const problem = problemOf(error, exchange.requestId);
        await writeReply(exchange, present(exchange, problem));
      }
    };
  };

  /** A place for a large answer, until its client has read it; listeners have places of their own. */
  function placeOf({ body, headers }: Reply, { keyId, principal }: Exchange): (() => void) | undefined {
    if (keyId === undefined || principal === undefined || isForListeners(headers)) return;
    const large = isStreamed(body) || (body !== undefined && body.length > largeAnswer);
    return large ? largeAnswers.take(keyId, principal.kind) : undefined;
  }

  function report(route: string, exchange: Exchange, complete: boolean, failure: unknown): void {
    const { request, response, keyKind } = exchange;
    const ms = clock.monotonicMs() - exchange.startedAtMs;
    const status = exchange.upgraded ? 101 : response.headersSent ? response.statusCode : 0;
    metrics.ended({ route, method: request.method, status, keyKind, ms, isStream: isStream(exchange) });
    const broken = failure !== undefined && isOurs(failure, status, response.headersSent && !complete);
    if (!broken && !accessLog.isLevelEnabled("info")) return;
    const line = {
      method: request.method,
      route,
      status,
      ms: Math.round(ms * 10) / 10,
      key_kind: keyKind,
      request_id: exchange.requestId,
      trace_id: exchange.trace.traceId,
      ...(complete ? undefined : { aborted: true }),
    };
    if (broken) log.error({ ...line, err: failure }, "request failed");
    else accessLog.info(line, "request");
  }
}

/** Whether a client listened for as long as it liked, so that the time says nothing. */
function isStream({ upgraded, headers }: Exchange): boolean {
  return upgraded || isForListeners(headers);
}

function isForListeners(headers: Reply["headers"]): boolean {
  return headers["Content-Type"]?.startsWith("text/event-stream") === true;
}

/** Whether an error is a fault of the mesh, rather than something a caller did. */
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
