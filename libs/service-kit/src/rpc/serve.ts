import type { ContractDeclaration, MethodDeclaration } from "@devmesh/contracts/contract";
import type { Msg } from "@nats-io/nats-core";
import { withTimeout } from "../clock.ts";
import type { Bus } from "../connection/bus.ts";
import { startResponder } from "../connection/responder.ts";
import { encodeError, ServiceError, sendableError, violationsOf } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { methodSubject } from "../subjects.ts";
import {
  parseTraceparent,
  requestIdHeader,
  type TraceContext,
  traceFields,
  traceHeader,
} from "../tracing/trace.ts";
import { callSpan, recordReceived, type SpanDescription } from "../tracing/tracer.ts";
import {
  type Context,
  createCallContext,
  fromWebhookHeader,
  type MethodName,
  type OpenCallContext,
  timeoutHeader,
  untilAborted,
} from "./context.ts";
import type { Implementation } from "./implementation.ts";
import { MAX_REPLY_BYTES } from "./page.ts";

/** What one method has done since the process started, as ADR-32 counts it. */
export interface EndpointStats {
  readonly name: string;
  readonly subject: string;
  readonly queueGroup: string;
  readonly requests: number;
  readonly errors: number;
  /** Nanoseconds spent answering, summed up. */
  readonly processingNs: number;
  /** Code and reason, never a message; empty before the first error. */
  readonly lastError: string;
}

/** A contract being served. */
export interface Served {
  readonly contract: ContractDeclaration;
  readonly endpoints: readonly EndpointStats[];
  /**
   * Takes no more calls and waits up to `boundMs` for running ones; aborts the rest, which end as `unavailable`.
   * Returns their number.
   */
  drain(boundMs: number): Promise<number>;
}

type Handler = (input: unknown, context: Context<ContractDeclaration, string>) => Promise<unknown>;

interface ServedMethod {
  readonly service: string;
  readonly name: string;
  readonly declaration: MethodDeclaration;
  readonly handler: Handler;
  readonly span: SpanDescription;
  readonly stats: { -readonly [K in keyof EndpointStats]: EndpointStats[K] };
}

/** What the calls of a service share. */
interface Server {
  readonly bus: Bus;
  /** Calls under way. */
  readonly open: Set<OpenCallContext>;
}

/** A call as it arrived: nothing of it has been checked yet. */
interface IncomingCall {
  /** The input, JSON in UTF-8. */
  readonly payload: Uint8Array;
  readonly timeout: string | undefined;
  readonly requestId: string | undefined;
  readonly fromWebhook: boolean;
  readonly trace: TraceContext;
}

/**
 * Serves a contract, shared with all replicas. Input and output are validated, each call ends by its deadline, and no
 * handler can break the connection.
 */
export function serve<C extends ContractDeclaration>(
  bus: Bus,
  contract: C,
  implementation: Implementation<C>,
): Served {
  const server: Server = { bus, open: new Set() };
  const methods = Object.entries(contract.methods).map(([name, declaration]): ServedMethod => {
    const { service } = contract;
    const subject = methodSubject(contract, name);
    return {
      service,
      name,
      declaration,
      handler: implementation[name as MethodName<C>] as Handler,
      span: callSpan("server", contract, name),
      stats: { name, subject, queueGroup: service, requests: 0, errors: 0, processingNs: 0, lastError: "" },
    };
  });
  const answers = new Map(
    methods.map((method) => [method.stats.subject, (msg: Msg) => answer(server, method, msg)]),
  );
  const { running, stop } = startResponder(bus, contract.service, answers);

  return {
    contract,
    endpoints: methods.map(({ stats }) => stats),
    async drain(boundMs) {
      await stop();
      if (await withTimeout(boundMs, running.settled())) return 0;
      const unfinished = server.open.size;
      const stopping = ServiceError.of("unavailable", { cause: new Error("the service is stopping") });
      for (const call of server.open) call.abort(stopping);
      await running.settled();
      return unfinished;
    },
  };
}

/** Never rejects. */
async function answer(server: Server, method: ServedMethod, msg: Msg): Promise<void> {
  const { bus } = server;
  const { stats, declaration, span } = method;
  const startedAt = performance.now();
  let traceparent: string | undefined;
  stats.requests++;
  try {
    traceparent = headerOf(msg, traceHeader);
    const body = await recordReceived(bus.tracer, span, traceparent, (trace) =>
      observe(server, method, {
        payload: msg.data,
        timeout: headerOf(msg, timeoutHeader),
        requestId: headerOf(msg, requestIdHeader),
        fromWebhook: headerOf(msg, fromWebhookHeader) !== undefined,
        trace,
      }),
    );
    await awaitReturn(bus);
    msg.respond(body);
  } catch (error) {
    const failure = sendableError(ServiceError.from(error), declaration.errors);
    stats.errors++;
    stats.lastError = `${failure.code}:${failure.reason}`;
    await awaitReturn(bus);
    const caller = parseTraceparent(traceparent);
    respondError(msg, failure, caller === null ? bus.log : bus.log.child(traceFields(caller)));
  } finally {
    stats.processingNs += Math.round((performance.now() - startedAt) * 1e6);
  }
}

/** Value of a header; undefined when it is missing or empty. */
function headerOf(msg: Msg, name: string): string | undefined {
  return msg.headers?.get(name) || undefined;
}

/** What is published without a connection is lost, and an answer may be given over the next one. */
async function awaitReturn(bus: Bus): Promise<void> {
  if (!bus.connected) await bus.awaitConnection(new AbortController().signal);
}

/** An error with more details than a reply may hold is `internal`, as is an answer of that size. */
function respondError(msg: Msg, failure: ServiceError, log: Logger): void {
  try {
    const whole = encodeError(failure);
    const bytes = Buffer.byteLength(whole.body);
    const fits = bytes <= MAX_REPLY_BYTES;
    if (!fits)
      log.error({ subject: msg.subject, reason: failure.reason, bytes }, "an error was too large to be sent");
    const { headers, body } = fits ? whole : encodeError(ServiceError.of("internal"));
    msg.respond(body, { headers });
  } catch (error) {
    // The connection is closed; the caller's own timer ends its wait.
    log.warn({ err: error }, "an error could not be answered");
  }
}

/** Measures and logs a call by its outcome, timed-out and refused ones included. */
async function observe(server: Server, method: ServedMethod, call: IncomingCall): Promise<string> {
  const { log, metrics } = server.bus;
  const { service, name } = method;
  const startedAt = performance.now();
  let failure: ServiceError | undefined;
  metrics.callsRunning.inc({ service });
  try {
    return await run(server, method, call);
  } catch (error) {
    failure = ServiceError.from(error);
    throw failure;
  } finally {
    const ms = performance.now() - startedAt;
    metrics.callsRunning.dec({ service });
    metrics.callSeconds.observe({ service, method: name, code: failure?.code ?? "ok" }, ms / 1000);
    logCall(log, method, call, ms, failure);
  }
}

/**
 * Replies and declared errors at `debug`, undelivered calls at `warn`, internal errors at `error`. Inputs and replies
 * are never logged.
 */
function logCall(
  log: Logger,
  { name, declaration }: ServedMethod,
  { trace, requestId }: IncomingCall,
  ms: number,
  failure: ServiceError | undefined,
): void {
  const level = failure === undefined ? "debug" : levelOf(failure, declaration);
  if (!log.isLevelEnabled(level)) return;
  const fields = {
    method: name,
    ms: Math.round(ms * 10) / 10,
    ...traceFields(trace),
    request_id: requestId,
    code: failure?.code ?? "ok",
    reason: failure?.reason,
  };
  if (level === "debug") log.debug(fields, "call");
  else
    log[level](
      { ...fields, err: failure?.cause ?? (level === "error" ? failure : undefined) },
      "call failed",
    );
}

function levelOf({ code, reason }: ServiceError, { errors }: MethodDeclaration): "debug" | "warn" | "error" {
  if (code === "unavailable") return "warn";
  if (Object.hasOwn(errors, reason)) return "debug";
  if (code === "internal") return "error";
  return code === "deadline_exceeded" ? "warn" : "debug";
}

/** The innermost part of a call: parse, run within the deadline, check, encode. Throws `ServiceError` only. */
async function run(server: Server, method: ServedMethod, call: IncomingCall): Promise<string> {
  const { declaration, handler } = method;
  const { trace, requestId, fromWebhook } = call;
  const timeoutMs = parseTimeout(call.timeout, declaration.deadlineMs);
  const input = parseInput(declaration, call.payload);
  const scope = createCallContext({
    timeoutMs,
    trace,
    fromWebhook,
    ...(requestId === undefined ? {} : { requestId }),
  });
  server.open.add(scope);
  try {
    const output = await untilAborted(scope.signal, () =>
      handler(input, methodContext(scope, method, server.bus.log)),
    );
    return encodeOutput(declaration, output);
  } catch (error) {
    throw asOwnError(error, declaration);
  } finally {
    server.open.delete(scope);
    scope[Symbol.dispose]();
  }
}

/**
 * Milliseconds of a received timeout header, at most `capMs`, which is also the default. Throws `invalid_request`
 * unless it is digits.
 */
function parseTimeout(header: string | undefined, capMs: number): number {
  if (header === undefined || header === "") return capMs;
  if (!/^\d{1,9}$/.test(header)) {
    throw ServiceError.of("invalid_request", {
      details: [{ pointer: "", detail: `header ${timeoutHeader} must be 1 to 9 digits` }],
    });
  }
  return Math.min(Number(header), capMs);
}

/** After validation, an `invalid_request` comes from a call that this service made. */
function asOwnError(error: unknown, declaration: MethodDeclaration): ServiceError {
  const failure = ServiceError.from(error);
  const foreign = failure.reason === "invalid_request" && !Object.hasOwn(declaration.errors, failure.reason);
  return foreign ? ServiceError.of("internal", { cause: failure }) : failure;
}

function parseInput(declaration: MethodDeclaration, payload: Uint8Array): unknown {
  let json: unknown;
  try {
    json = payload.length === 0 ? {} : JSON.parse(utf8.decode(payload));
  } catch (cause) {
    throw ServiceError.of("invalid_request", { details: [{ pointer: "", detail: "is not JSON" }], cause });
  }
  const input = declaration.in.safeParse(json);
  if (input.success) return input.data;
  throw ServiceError.of("invalid_request", { details: violationsOf(input.error), cause: input.error });
}

function encodeOutput(declaration: MethodDeclaration, output: unknown): string {
  const checked = declaration.out.safeParse(output);
  if (!checked.success) throw ServiceError.of("internal", { cause: checked.error });
  const body = JSON.stringify(checked.data) ?? "null";
  const bytes = Buffer.byteLength(body);
  if (bytes > MAX_REPLY_BYTES) {
    throw ServiceError.of("internal", {
      cause: new Error(`a reply of ${bytes} bytes is over ${MAX_REPLY_BYTES}`),
    });
  }
  return body;
}

function methodContext(
  scope: OpenCallContext,
  { name, declaration }: ServedMethod,
  serviceLog: Logger,
): Context<ContractDeclaration, string> {
  let log: Logger | undefined;
  const { deadline, signal, trace, requestId, fromWebhook } = scope;
  return {
    deadline,
    signal,
    trace,
    ...(requestId === undefined ? {} : { requestId }),
    ...(fromWebhook && { fromWebhook }),
    get log() {
      log ??= serviceLog.child({
        method: name,
        ...traceFields(trace),
        ...(requestId === undefined ? {} : { request_id: requestId }),
      });
      return log;
    },
    fail(reason: string, details?: unknown): never {
      const declared = Object.hasOwn(declaration.errors, reason) ? declaration.errors[reason] : undefined;
      if (declared === undefined)
        throw ServiceError.of("internal", { cause: new Error(`undeclared reason ${reason}`) });
      throw new ServiceError({
        code: declared.code,
        reason,
        message: declared.when,
        ...(details === undefined ? {} : { details }),
      });
    },
  };
}

const utf8 = new TextDecoder("utf-8", { fatal: true });
