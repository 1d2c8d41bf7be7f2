import type { ContractDeclaration, ErrorDeclaration } from "@devmesh/contracts/contract";
import type { z } from "zod";
import { type Clock, systemClock } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { startTrace, type TraceContext } from "../tracing/trace.ts";

/** Header with the milliseconds a callee has left: relative, since the clocks of two machines differ. */
export const timeoutHeader = "Mesh-Timeout-Ms";

/** Header of calls and events that a receiver of webhooks caused. */
export const fromWebhookHeader = "Mesh-From-Webhook";

/** How much longer a caller waits than it gives the callee, so that the callee's own error arrives first. */
export const graceMs = 50;

/** A point in time on the monotonic clock by which a call must have ended; nested calls inherit what remains. */
export class Deadline {
  readonly #endsAtMs: number;
  readonly #clock: Clock;

  private constructor(endsAtMs: number, clock: Clock) {
    this.#endsAtMs = endsAtMs;
    this.#clock = clock;
  }

  static after(ms: number, clock: Clock = systemClock): Deadline {
    return new Deadline(clock.monotonicMs() + ms, clock);
  }

  remainingMs(): number {
    return Math.max(0, this.#endsAtMs - this.#clock.monotonicMs());
  }

  get clock(): Clock {
    return this.#clock;
  }
}

/** What any caller hands on with a call. */
export interface CallContext {
  /** When the whole of it must have ended. */
  readonly deadline: Deadline;
  /**
   * Aborts at the deadline, when the caller gives up, and when a shutdown takes too long. Pass it to every driver call.
   */
  readonly signal: AbortSignal;
  readonly trace: TraceContext;
  /** The id an HTTP answer carries as `X-Request-Id`; for logs. */
  readonly requestId?: string;
  /** A receiver of webhooks made the call: its changes make no events for webhooks, or a loop could begin (ADR 39). */
  readonly fromWebhook?: true;
}

/** Names of a contract's methods. */
export type MethodName<C extends ContractDeclaration> = keyof C["methods"] & string;

/** Reasons a method declares. */
export type Reason<C extends ContractDeclaration, M extends MethodName<C>> = keyof C["methods"][M]["errors"] &
  string;

type Details<E extends ErrorDeclaration> = E extends { readonly details: infer D extends z.ZodType }
  ? [details: z.input<D>]
  : [];

/** What a method gets besides its input. */
export interface Context<C extends ContractDeclaration, M extends MethodName<C>> extends CallContext {
  /** Ends the call with an error the method declares. Use it as `return context.fail(…)` or in an expression. */
  fail<R extends Reason<C, M>>(
    reason: R,
    ...details: Details<NonNullable<C["methods"][M]["errors"][R]>>
  ): never;
  /** Carries method, trace and request id on each line. */
  readonly log: Logger;
}

/** A call context with an end: disposing it clears its timer and its listener; the signal then aborts no more. */
export interface OpenCallContext extends CallContext, Disposable {
  /** Ends the call early: its signal aborts with `reason`. */
  abort(reason: unknown): void;
}

/** From what an edge of the mesh (an HTTP request, an MQTT message, a timer) makes a call context. */
export interface CallContextOptions {
  readonly timeoutMs: number;
  /** Default: a new trace. */
  readonly trace?: TraceContext;
  readonly requestId?: string;
  readonly fromWebhook?: boolean | undefined;
  /** Aborts the call from outside, such as an HTTP client that went away. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/** A new call context. Dispose of it when the work is done (`using call = …`); otherwise it ends at its deadline. */
export function createCallContext(options: CallContextOptions): OpenCallContext {
  const { timeoutMs, trace = startTrace(), requestId, fromWebhook, signal: outer } = options;
  const { clock = systemClock } = options;
  const controller = new AbortController();
  const cancelTimer = clock.schedule(timeoutMs, () => controller.abort(ServiceError.of("deadline_exceeded")));
  const onOuterAbort = () => controller.abort(outer?.reason);
  if (outer?.aborted) onOuterAbort();
  else outer?.addEventListener("abort", onOuterAbort, { once: true });
  return {
    deadline: Deadline.after(timeoutMs, clock),
    signal: controller.signal,
    trace,
    ...(requestId === undefined ? {} : { requestId }),
    ...(fromWebhook ? { fromWebhook } : {}),
    abort: (reason) => controller.abort(reason),
    [Symbol.dispose]() {
      cancelTimer();
      outer?.removeEventListener("abort", onOuterAbort);
    },
  };
}

/** Runs `work` until `signal` aborts; a later result is ignored. */
export function untilAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    // The handler may throw before its first await: the wrapper turns that into a rejection, too.
    (async () => work())().then(resolve, reject);
  });
}
