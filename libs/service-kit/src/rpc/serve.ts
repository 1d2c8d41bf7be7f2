import type { ContractDeclaration, MethodDeclaration } from "@devmesh/contracts/contract";
import type { Msg } from "@nats-io/nats-core";
import { type Clock, systemClock, withTimeout } from "../clock.ts";
import type { Bus } from "../connection/bus.ts";
import { startResponder } from "../connection/responder.ts";
import { encodeError, ServiceError, sendableError, violationsOf } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { methodSubject } from "../subjects.ts";
import { parseTraceparent, requestIdHeader, traceFields, traceHeader } from "../tracing/trace.ts";
import { type Context, createCallContext, type MethodName, type OpenCallContext } from "./context.ts";
import { parseTimeout, timeoutHeader, untilAborted } from "./deadline.ts";
import type { Implementation } from "./implementation.ts";
import {
  type CallHandler,
  type IncomingCall,
  type Interceptor,
  logCalls,
  measureCalls,
  traceCalls,
} from "./interceptors.ts";
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

/** The interceptors of every service, outermost first. */
export function defaultInterceptors(bus: Bus): readonly Interceptor[] {
  return [traceCalls(bus.tracer), measureCalls(bus.metrics), logCalls()];
}

/**
 * Serves a contract, shared with all replicas. Input and output are validated, each call ends by its deadline, and no
 * handler can break the connection.
 */
export function serve<C extends ContractDeclaration>(
  bus: Bus,
  contract: C,
  implementation: Implementation<C>,
  interceptors: readonly Interceptor[] = defaultInterceptors(bus),
  clock: Clock = systemClock,
): Served {
  const open = new Set<OpenCallContext>();
  const endpoints: EndpointStats[] = [];
  const answers = new Map<string, (msg: Msg) => Promise<void>>();

  for (const [method, declaration] of Object.entries(contract.methods)) {
    const subject = methodSubject(contract, method);
    const endpoint = newEndpoint(method, subject, contract.service);
    const core = checkedCall(declaration, implementation[method as MethodName<C>] as Handler, clock, open);
    const handler = interceptors.reduceRight<CallHandler>((next, wrap) => wrap(next), core);
    endpoints.push(endpoint);
    answers.set(subject, (msg) =>
      answer(bus, msg, incoming(contract, method, msg, bus.log), handler, declaration, endpoint),
    );
  }
  const { running, stop } = startResponder(bus, contract.service, answers);

  return {
    contract,
    endpoints,
    async drain(boundMs) {
      await stop();
      if (await withTimeout(boundMs, running.settled(), clock)) return 0;
      const unfinished = open.size;
      const stopping = ServiceError.of("unavailable", { cause: new Error("the service is stopping") });
      for (const call of open) call.abort(stopping);
      await running.settled();
      return unfinished;
    },
  };
}

type Handler = (input: unknown, context: Context<ContractDeclaration, string>) => Promise<unknown>;

/** The innermost part of a call: parse, run within the deadline, check, encode. */
function checkedCall(
  declaration: MethodDeclaration,
  handler: Handler,
  clock: Clock,
  open: Set<OpenCallContext>,
): CallHandler {
  return async (call) => {
    const timeoutMs = parseTimeout(call.header(timeoutHeader), declaration.deadlineMs);
    const input = parseInput(declaration, call.payload);
    const requestId = call.header(requestIdHeader);
    const scope = createCallContext({
      timeoutMs,
      clock,
      ...(call.trace === undefined ? {} : { trace: call.trace }),
      ...(requestId === undefined ? {} : { requestId }),
    });
    open.add(scope);
    try {
      const output = await untilAborted(scope.signal, () =>
        handler(input, methodContext(scope, declaration, call)),
      );
      return encodeOutput(declaration, output);
    } catch (error) {
      throw asOwnError(error, declaration);
    } finally {
      open.delete(scope);
      scope[Symbol.dispose]();
    }
  };
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
  declaration: MethodDeclaration,
  call: IncomingCall,
): Context<ContractDeclaration, string> {
  let log: Logger | undefined;
  const { deadline, signal, trace, requestId } = scope;
  return {
    deadline,
    signal,
    trace,
    ...(requestId === undefined ? {} : { requestId }),
    get log() {
      log ??= call.log.child({
        method: call.method,
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

/** What is published without a connection is lost, and an answer may be given over the next one. */
async function awaitReturn(bus: Bus): Promise<void> {
  if (!bus.connected) await bus.awaitConnection(new AbortController().signal);
}

async function answer(
  bus: Bus,
  msg: Msg,
  call: IncomingCall,
  handler: CallHandler,
  declaration: MethodDeclaration,
  endpoint: MutableEndpoint,
): Promise<void> {
  const startedAt = performance.now();
  endpoint.requests++;
  try {
    const body = await handler(call);
    await awaitReturn(bus);
    msg.respond(body);
  } catch (error) {
    const failure = sendableError(ServiceError.from(error), declaration.errors);
    endpoint.errors++;
    endpoint.lastError = `${failure.code}:${failure.reason}`;
    await awaitReturn(bus);
    respondError(msg, failure, call);
  } finally {
    endpoint.processingNs += Math.round((performance.now() - startedAt) * 1e6);
  }
}

/** An error with more details than a reply may hold is `internal`, as is an answer of that size. */
function respondError(msg: Msg, failure: ServiceError, call: IncomingCall): void {
  const log = () => {
    const caller = parseTraceparent(call.header(traceHeader));
    return caller === null ? call.log : call.log.child(traceFields(caller));
  };
  try {
    const whole = encodeError(failure);
    const bytes = Buffer.byteLength(whole.body);
    const fits = bytes <= MAX_REPLY_BYTES;
    if (!fits)
      log().error(
        { subject: msg.subject, reason: failure.reason, bytes },
        "an error was too large to be sent",
      );
    const { headers, body } = fits ? whole : encodeError(ServiceError.of("internal"));
    msg.respond(body, { headers });
  } catch (error) {
    // The connection is closed; the caller's own timer ends its wait.
    log().warn({ err: error }, "an error could not be answered");
  }
}

function incoming(contract: ContractDeclaration, method: string, msg: Msg, log: Logger): IncomingCall {
  return {
    contract,
    method,
    payload: msg.data,
    header: (name) => msg.headers?.get(name) || undefined,
    log,
  };
}

type MutableEndpoint = { -readonly [K in keyof EndpointStats]: EndpointStats[K] };

function newEndpoint(name: string, subject: string, queueGroup: string): MutableEndpoint {
  return { name, subject, queueGroup, requests: 0, errors: 0, processingNs: 0, lastError: "" };
}

const utf8 = new TextDecoder("utf-8", { fatal: true });
