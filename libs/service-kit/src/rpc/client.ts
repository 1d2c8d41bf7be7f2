import type { MethodDeclaration } from "@devmesh/contracts/contract";
import type { Dependency } from "@devmesh/contracts/topology";
import { errors, type Msg } from "@nats-io/nats-core";
import { assertConnected, type Bus, NotConnected } from "../connection/bus.ts";
import { natsConnection } from "../connection/nats-connection.ts";
import { decodeError, errorCodeHeader, ServiceError, violationsOf } from "../errors.ts";
import { methodSubject, pingOf } from "../subjects.ts";
import { requestIdHeader, type TraceContext, traceHeaders } from "../tracing/trace.ts";
import { callSpan, recordSpan } from "../tracing/tracer.ts";
import { type CallContext, fromWebhookHeader, graceMs, type MethodName, timeoutHeader } from "./context.ts";
import type { Client } from "./implementation.ts";

/** Waits before a call is sent again after `unavailable`, in milliseconds; each is jittered by half. */
const retryAfterMs = [20, 60];
const longestRetryMs = 150;

/** How often a call is sent again at least. */
const leastRetries = 3;

/**
 * How long calls wait for a service without a replica, in milliseconds: one on SQLite ends before its successor starts.
 * Once it is absent for longer, calls fail soon.
 */
const absenceMs = 4_000;

/** How long an absence without an answer is remembered, in milliseconds; then calls wait for the service again. */
const rememberAbsenceMs = 60_000;

/**
 * How long a call waits for its answer before it asks whether the service answers at all, and then for that. The sum
 * leaves a page half a second to say within 3 s that a service hangs.
 */
const silenceMs = 2_000;
const pingMs = 500;

/** What a call leaves of its caller's time, in milliseconds, so that its own error says which service was silent. */
const reserveMs = 100;

/**
 * A client of the methods that a service declares to call. It passes on trace, request id and remaining time, and
 * throws `ServiceError` only: the method's declared errors, or those of `kitErrors`.
 */
export function createClient<const D extends Dependency>(
  bus: Bus,
  dependency: D,
): Client<D["contract"], D["methods"][number] & MethodName<D["contract"]>> {
  const isFinal = createHangCheck(bus, dependency.contract.service);
  const parsed: Record<string, (input: unknown, call: CallContext) => Promise<unknown>> = {};
  const bytes: Record<string, (input: unknown, call: CallContext) => Promise<Uint8Array>> = {};
  for (const method of dependency.methods) {
    const declaration = dependency.contract.methods[method];
    if (declaration === undefined)
      throw new TypeError(`${dependency.contract.service} has no method ${method}`);
    const ask = remoteCall(bus, dependency, method, declaration, isFinal);
    bytes[method] = ask;
    parsed[method] = async (input, call) => parseAnswer(declaration, await ask(input, call));
  }
  // The one place where names known at run time meet the types derived from them.
  return { ...parsed, bytes } as unknown as Client<
    D["contract"],
    D["methods"][number] & MethodName<D["contract"]>
  >;
}

/**
 * Whether a service, or one replica of it, is connected to the broker and does not answer a ping within `waitMs`. One
 * that is not connected does not hang.
 */
export async function hangs(
  bus: Bus,
  {
    service,
    replica,
    waitMs,
  }: { readonly service: string; readonly replica?: string; readonly waitMs: number },
): Promise<boolean> {
  try {
    await bus.request(pingOf(service, replica), "", { timeoutMs: waitMs, answeredBy: service });
    return false;
  } catch (error) {
    return error instanceof errors.TimeoutError;
  }
}

/** `hangs`, asked once for all calls of a service that wait at the same time. */
function createHangCheck(bus: Bus, service: string): () => Promise<boolean> {
  let asked: Promise<boolean> | null = null;
  return () => {
    asked ??= hangs(bus, { service, waitMs: pingMs }).finally(() => {
      asked = null;
    });
    return asked;
  };
}

function remoteCall(
  bus: Bus,
  { contract }: Dependency,
  method: string,
  declaration: MethodDeclaration,
  isFinal: () => Promise<boolean>,
) {
  const { service } = contract;
  const subject = methodSubject(contract, method);
  const span = callSpan("client", contract, method);
  let absentSinceMs = Number.NEGATIVE_INFINITY;
  const isNewlyAbsent = (error: unknown, nowMs: number): boolean => {
    if (!(error instanceof ServiceError && error.cause instanceof errors.NoRespondersError)) return false;
    if (nowMs - absentSinceMs > rememberAbsenceMs) absentSinceMs = nowMs;
    return nowMs - absentSinceMs < absenceMs;
  };
  return (input: unknown, call: CallContext): Promise<Uint8Array> =>
    recordSpan(bus.tracer, span, call.trace, (trace) => ask(input, call, trace));

  async function ask(input: unknown, call: CallContext, trace: TraceContext): Promise<Uint8Array> {
    const body = encodeInput(declaration, input);
    assertCarried(bus, body);
    let mayBeDone = false;
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await send(bus, { service, subject, declaration, isFinal }, body, call, trace);
        absentSinceMs = Number.NEGATIVE_INFINITY;
        return answer;
      } catch (error) {
        if (mayBeDone && meansDone(declaration, error)) return emptyAnswer;
        if (!isNobodyThere(error)) throw error;
        mayBeDone ||= error.cause instanceof errors.ClosedConnectionError;
        const mayReturn = isNewlyAbsent(error, call.deadline.clock.monotonicMs());
        if (attempt >= leastRetries && !mayReturn) throw error;
        const jittered = (retryAfterMs[attempt] ?? longestRetryMs) * (0.5 + Math.random());
        if (call.deadline.remainingMs() <= jittered) throw error;
        bus.metrics.callRetries.inc({ service, method });
        await pause(jittered, call, error);
      }
    }
  }
}

/** What a method with nothing to say answers. */
const emptyAnswer = new TextEncoder().encode("{}");

function meansDone(declaration: MethodDeclaration, error: unknown): boolean {
  return error instanceof ServiceError && declaration.errors[error.reason]?.meansDone === true;
}

interface RemoteMethod {
  readonly service: string;
  readonly subject: string;
  readonly declaration: MethodDeclaration;
  /** Whether its silence will not end. */
  readonly isFinal: () => Promise<boolean>;
}

async function send(
  bus: Bus,
  { service, subject, declaration, isFinal }: RemoteMethod,
  body: string,
  call: CallContext,
  trace: TraceContext,
): Promise<Uint8Array> {
  await bus.awaitConnection(call.signal);
  if (call.signal.aborted) throw abandoned(call.signal);
  const leftMs = call.deadline.remainingMs();
  const timeoutMs = Math.floor(Math.min(declaration.deadlineMs, leftMs - Math.min(reserveMs, leftMs / 10)));
  if (timeoutMs <= 0) throw ServiceError.of("deadline_exceeded");
  if (bus[natsConnection].isClosed() || bus[natsConnection].isDraining())
    throw nobodyThere(service, new Error("the bus is closed"));
  assertConnected(bus);
  let reply: Msg;
  try {
    reply = await bus.request(subject, body, {
      timeoutMs: timeoutMs + graceMs,
      headers: callHeaders(call, timeoutMs, trace),
      answeredBy: service,
      signal: call.signal,
      endsWithConnection: declaration.idempotent,
      silence: { afterMs: silenceMs, isFinal },
    });
  } catch (error) {
    if (call.signal.aborted && error === call.signal.reason) throw abandoned(call.signal);
    // Only an idempotent request ends so while the bus is open.
    if (error instanceof errors.ClosedConnectionError) throw nobodyThere(service, error);
    throw asServiceError(service, error);
  }
  if (reply.headers?.has(errorCodeHeader) === true)
    throw decodeError(reply.string(), service, declaration.errors);
  return reply.data;
}

function callHeaders(call: CallContext, timeoutMs: number, trace: TraceContext) {
  const wire = traceHeaders(trace);
  wire.set(timeoutHeader, String(timeoutMs));
  if (call.requestId !== undefined) wire.set(requestIdHeader, call.requestId);
  if (call.fromWebhook) wire.set(fromWebhookHeader, "1");
  return wire;
}

/** A refused input is not sent; what is sent is the input as it came, for its owner to parse. */
function encodeInput(declaration: MethodDeclaration, input: unknown): string {
  const checked = declaration.in.safeParse(input);
  if (!checked.success) throw ServiceError.of("invalid_request", { details: violationsOf(checked.error) });
  try {
    return JSON.stringify(input) ?? "null";
  } catch (cause) {
    throw ServiceError.of("internal", { cause });
  }
}

/** What the headers of a call may take of the broker's `max_payload`; they take less. */
const headerBytes = 1_024;

/** Numbers and escapes can make an input larger than the text that it was read from. */
function assertCarried(bus: Bus, body: string): void {
  const most = (bus[natsConnection].info?.max_payload ?? Number.POSITIVE_INFINITY) - headerBytes;
  if (Buffer.byteLength(body) <= most) return;
  throw ServiceError.of("invalid_request", {
    details: [{ pointer: "", detail: `is larger than the ${most} bytes that a call can carry` }],
  });
}

function parseAnswer(declaration: MethodDeclaration, bytes: Uint8Array): unknown {
  let answer: unknown;
  try {
    answer = JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw ServiceError.of("internal", { cause });
  }
  const checked = declaration.out.safeParse(answer);
  if (!checked.success) throw ServiceError.of("internal", { cause: checked.error });
  return checked.data;
}

async function pause(ms: number, call: CallContext, error: unknown): Promise<void> {
  try {
    await call.deadline.clock.sleep(ms, call.signal);
  } catch {
    throw error;
  }
}

function abandoned(signal: AbortSignal): ServiceError {
  return signal.reason instanceof ServiceError
    ? signal.reason
    : ServiceError.of("unavailable", { cause: signal.reason });
}

/** Errors of calls that no replica received, or that are idempotent: only those are sent again. */
const unseen = new WeakSet<ServiceError>();

function nobodyThere(service: string, cause: unknown): ServiceError {
  const error = ServiceError.of("unavailable", { service, cause });
  unseen.add(error);
  return error;
}

function isNobodyThere(error: unknown): error is ServiceError {
  return error instanceof ServiceError && unseen.has(error);
}

/** Whether a call was received by no replica: none subscribed, or there was no connection to the broker. */
export function isUndelivered(error: unknown): boolean {
  if (!(error instanceof ServiceError) || error.reason !== "unavailable") return false;
  return error.cause instanceof errors.NoRespondersError || error.cause instanceof NotConnected;
}

function asServiceError(service: string, error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  if (error instanceof errors.NoRespondersError) return nobodyThere(service, error);
  if (error instanceof errors.TimeoutError)
    return ServiceError.of("deadline_exceeded", { service, cause: error });
  if (error instanceof errors.DrainingConnectionError) {
    return ServiceError.of("unavailable", { service, cause: error });
  }
  return ServiceError.of("internal", { cause: error });
}
