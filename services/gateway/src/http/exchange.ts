import type { ServerResponse } from "node:http";
import type { Json } from "@devmesh/contracts/model/json";
import type { KeyKind, Principal } from "@devmesh/contracts/principal";
import type { Clock } from "@devmesh/service-kit/clock";
import { type CallContext, createCallContext, type OpenCallContext } from "@devmesh/service-kit/rpc/context";
import type { TraceContext } from "@devmesh/service-kit/tracing/trace";
import type { Request } from "express";

const wellFormedRequestId = /^[A-Za-z0-9._-]{1,128}$/;

export interface ExchangeOptions {
  readonly clock: Clock;
  /** Time for the calls of one request, in milliseconds. */
  readonly timeoutMs: number;
}

/** Parts of a path by the names of a route's parameters, decoded. */
export type PathParams = Readonly<Record<string, string>>;

/** Takes tokens beyond the one of the request, before the work. Throws `rate_limited` while the key is in debt. */
export type Charge = (tokens: number) => void;

/** Runs calls under their own timeout, in milliseconds; they also end when the client goes away. */
export type Within = <T>(timeoutMs: number, work: (call: CallContext) => Promise<T>) => Promise<T>;

/** The key of a request, for streams that outlive it. */
export interface Caller {
  readonly keyId: string;
  /** Unix milliseconds; infinite for a key without an end. */
  readonly expiresAtMs: number;
  /** Verifies the key again; a promise where it is not in the cache. */
  readonly verifyAgain: () => unknown;
}

/** One request and its answer. The checks of a route fill it in; handlers receive it as `ApiRequest`. */
export class Exchange {
  readonly request: Request;
  readonly response: ServerResponse;
  /** As in the path; `params` is what the route's schema makes of them. */
  readonly pathParams: PathParams;
  readonly startedAtMs: number;
  readonly trace: TraceContext;
  /** Taken from `X-Request-Id` when that is well-formed, else the trace's id. */
  readonly requestId: string;
  /** Headers of every answer to this request. */
  readonly headers: Record<string, string>;
  /** Kind of the caller's key, once known; for logs and metrics. */
  keyKind: KeyKind | "none" = "none";
  params: unknown;
  query: unknown;
  body: unknown;
  receivedBody: Json | undefined;
  principal: Principal | undefined;
  keyId: string | undefined;
  /** The key that changes are listed under: of a session its master key. */
  authorKeyId: string | undefined;
  /** What people call that key. */
  keyName: string | undefined;
  caller: Caller | undefined;
  charge: Charge = () => undefined;
  /** Whether the connection is a WebSocket now, without an HTTP answer. */
  upgraded = false;
  readonly #options: ExchangeOptions;
  #call: OpenCallContext | undefined;
  #others: Set<OpenCallContext> | undefined;
  #aborted: { readonly reason: unknown } | undefined;

  /** Rate limit key of a caller without a key. */
  get address(): string {
    return rateAddress(this.request.ip);
  }

  constructor(
    request: Request,
    response: ServerResponse,
    pathParams: PathParams,
    trace: TraceContext,
    options: ExchangeOptions,
  ) {
    this.request = request;
    this.response = response;
    this.pathParams = pathParams;
    this.#options = options;
    this.startedAtMs = options.clock.monotonicMs();
    this.trace = trace;
    const asked = request.headers["x-request-id"];
    this.requestId =
      typeof asked === "string" && wellFormedRequestId.test(asked) ? asked : this.trace.traceId;
    this.headers = {
      "X-Request-Id": this.requestId,
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
    };
  }

  get call(): CallContext {
    this.#call ??= this.#open(this.#options.timeoutMs);
    return this.#call;
  }

  // Handlers take these out of the exchange, so they are bound.
  readonly within: Within = async (timeoutMs, work) => {
    const call = this.#open(timeoutMs);
    this.#others ??= new Set();
    this.#others.add(call);
    try {
      return await work(call);
    } finally {
      this.#others.delete(call);
      call[Symbol.dispose]();
    }
  };

  readonly header = (name: string): string | undefined => {
    const value = this.request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };

  readonly preferred = <const T extends readonly [string, ...string[]]>(types: T): T[number] => {
    const accepted = this.request.accepts([...types]);
    return accepted === false ? types[0] : accepted;
  };

  /** Aborts the calls of this request, those to come included. */
  abort(reason: unknown): void {
    this.#aborted = { reason };
    this.#call?.abort(reason);
    for (const call of this.#others ?? []) call.abort(reason);
  }

  end(): void {
    this.#call?.[Symbol.dispose]();
  }

  #open(timeoutMs: number): OpenCallContext {
    const { clock } = this.#options;
    const call = createCallContext({ timeoutMs, trace: this.trace, requestId: this.requestId, clock });
    if (this.#aborted !== undefined) call.abort(this.#aborted.reason);
    return call;
  }
}

/** Rate limit key of an address: of IPv6 the network of 64 bits, which belongs to one caller. */
export function rateAddress(address: string | undefined): string {
  if (address === undefined || address === "") return "unknown";
  if (address.startsWith("::ffff:")) return address.slice("::ffff:".length);
  if (!address.includes(":")) return address;
  const [head = "", tail = ""] = address.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === "" ? [] : tail.split(":");
  const zeros = address.includes("::")
    ? Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0")
    : [];
  return `${[...left, ...zeros, ...right].slice(0, 4).join(":")}::/64`;
}
