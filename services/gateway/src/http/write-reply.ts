import { drained } from "./drained.ts";
import type { Exchange } from "./exchange.ts";
import type { Reply } from "./reply.ts";
import { ClientGone } from "./request-body.ts";

/**
 * Writes an answer as fast as the client reads it, holding one chunk. An error before the first chunk is thrown and
 * can still be answered; a later one ends the connection in the middle, so that a cut answer never looks whole.
 */
export async function writeReply(exchange: Exchange, reply: Reply): Promise<void> {
  const { response, headers } = exchange;
  if (reply.takeOver !== undefined) {
    addHeaders(headers, reply.headers);
    return reply.takeOver(exchange);
  }
  const { status, body } = reply;
  if (isStreamed(body)) {
    return writeChunks(exchange, reply, body[Symbol.asyncIterator]());
  }
  addHeaders(headers, reply.headers);
  if (body !== undefined) headers["Content-Length"] = String(Buffer.byteLength(body));
  response.writeHead(status, headers);
  response.end(body);
}

/** Whether a body comes in chunks. */
export function isStreamed(body: Reply["body"]): body is AsyncIterable<Uint8Array | string> {
  return typeof body === "object" && Symbol.asyncIterator in body;
}

/** What an answer says replaces what is said of all, but for what it depends on: that adds up. */
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
