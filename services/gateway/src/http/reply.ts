import type { Writable } from "node:stream";
import type { Exchange } from "./exchange.ts";
import { ClientGone } from "./request-body.ts";

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
  response.writeHead(status, headers);
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

async function writeChunks(
  { request, response, headers }: Exchange,
  reply: Reply,
  chunks: AsyncIterator<Uint8Array | string>,
): Promise<void> {
  let chunk = await chunks.next();
  addHeaders(headers, reply.headers);
  response.writeHead(reply.status, headers);
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
