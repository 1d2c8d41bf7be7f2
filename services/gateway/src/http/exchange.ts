import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
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

/** A body that the handler reads in pieces, no faster than it takes them. */
export interface Upload {
  /** Bytes that were declared; undefined for a body in chunks. */
  readonly declaredBytes: number | undefined;
  /** Pieces of the given size, the last one shorter. Throws `ClientGone` when the connection ends before the body. */
  pieces(pieceBytes: number): AsyncGenerator<Buffer, void, undefined>;
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
  upload: Upload | undefined;
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

  get method(): string {
    return this.request.method;
  }

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
    this.requestId = askedRequestId(request) ?? this.trace.traceId;
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
    const { trace, requestId } = this;
    const fromWebhook = this.request.headers["webhook-id"] !== undefined;
    const call = createCallContext({ timeoutMs, trace, requestId, fromWebhook, clock });
    if (this.#aborted !== undefined) call.abort(this.#aborted.reason);
    return call;
  }
}

/** The `X-Request-Id` of a request; undefined without a well-formed one. */
export function askedRequestId({ headers }: Pick<Request, "headers">): string | undefined {
  const asked = headers["x-request-id"];
  return typeof asked === "string" && wellFormedRequestId.test(asked) ? asked : undefined;
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

/** The client has gone, so that no answer is sent. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** The answer of a route. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Whole, or in chunks: an error of the first chunk can still be answered. */
  readonly body?: Uint8Array | string | AsyncIterable<Uint8Array | string>;
  /** Takes the connection over instead of `status` and `body`; throws only before it has. */
  readonly takeOver?: (exchange: Exchange) => void;
  /** Id of what the request created, for the list of changes. */
  readonly created?: string;
  /** Called once when the answer was sent, or the client has gone. */
  readonly release?: () => void;
}

const jsonHeaders = { "Content-Type": "application/json" } as const;

export function json(
  body: Uint8Array | string,
  { status = 200, headers }: Partial<Pick<Reply, "status" | "headers">> = {},
): Reply {
  return { status, headers: headers === undefined ? jsonHeaders : { ...jsonHeaders, ...headers }, body };
}

export const noContent: Reply = { status: 204, headers: {} };

export function stream(
  contentType: string,
  body: AsyncIterable<Uint8Array | string>,
  headers: Reply["headers"] = {},
): Reply {
  return { status: 200, headers: { "Content-Type": contentType, ...headers }, body };
}

export function page(html: string, status = 200): Reply {
  return { status, headers: { "Content-Type": "text/html; charset=utf-8" }, body: html };
}

/**
 * Writes an answer as fast as the client reads it, holding one chunk. An error before the first chunk is thrown and
 * can still be answered; a later one ends the connection, so that a cut answer never looks whole.
 */
export async function writeReply(exchange: Exchange, reply: Reply): Promise<void> {
  const { response, headers } = exchange;
  const { status, body } = reply;
  if (isStreamed(body)) return writeChunks(exchange, reply, body[Symbol.asyncIterator]());
  addHeaders(headers, reply.headers);
  if (reply.takeOver !== undefined) return reply.takeOver(exchange);
  if (body !== undefined) headers["Content-Length"] = String(Buffer.byteLength(body));
  writeHead(exchange, status);
  response.end(body);
}

/** Whether a body comes in chunks. */
export function isStreamed(body: Reply["body"]): body is AsyncIterable<Uint8Array | string> {
  return typeof body === "object" && Symbol.asyncIterator in body;
}

/** Headers of a reply override the defaults; `Vary` is appended. */
function addHeaders(headers: Record<string, string>, more: Readonly<Record<string, string>>): void {
  const { Vary: before } = headers;
  Object.assign(headers, more);
  if (before !== undefined && more.Vary !== undefined) headers.Vary = `${before}, ${more.Vary}`;
}

function writeHead({ request, response, headers }: Exchange, status: number): void {
  // The rest of the body is not read, so nothing can follow it.
  if (!request.complete) response.shouldKeepAlive = false;
  response.writeHead(status, headers);
}

async function writeChunks(
  exchange: Exchange,
  reply: Reply,
  chunks: AsyncIterator<Uint8Array | string>,
): Promise<void> {
  const { request, response, headers } = exchange;
  let chunk = await chunks.next();
  addHeaders(headers, reply.headers);
  writeHead(exchange, reply.status);
  if (request.method === "HEAD") {
    await chunks.return?.();
    response.end();
    return;
  }
  try {
    while (!chunk.done) {
      if (chunk.value.length > 0 && !response.write(chunk.value)) await drained(response);
      if (response.destroyed) throw new ClientGone();
      chunk = await chunks.next();
    }
    response.end();
  } catch (error) {
    response.destroy();
    await chunks.return?.();
    throw error;
  }
}

/** Resolves when a connection has taken what was written to it, or is gone; at once where nothing waits. */
export function drained(writable: Writable): Promise<void> {
  if (!writable.writableNeedDrain || writable.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = () => {
      writable.off("drain", settle).off("close", settle);
      resolve();
    };
    writable.on("drain", settle).on("close", settle);
  });
}
