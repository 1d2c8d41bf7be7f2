import type { Exchange } from "./exchange.ts";

/** What a route answers, before it is written to a connection. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Whole, or in chunks: the first is awaited before anything is sent, so that its error is still a proper answer. */
  readonly body?: Uint8Array | string | AsyncIterable<Uint8Array | string>;
  /**
   * Instead of `status` and `body`: takes over the connection, which from then on is its own. Throws before it has,
   * or not at all.
   */
  readonly takeOver?: (exchange: Exchange) => void;
}

const jsonHeaders = { "Content-Type": "application/json" } as const;

/** An answer in JSON; the bytes are passed on as they are. */
export function json(
  body: Uint8Array | string,
  {
    status = 200,
    headers,
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Reply {
  return { status, headers: headers === undefined ? jsonHeaders : { ...jsonHeaders, ...headers }, body };
}

/** An answer without a body. */
export const noContent: Reply = { status: 204, headers: {} };

/** An answer that is written as it comes. */
export function stream(contentType: string, body: AsyncIterable<Uint8Array | string>): Reply {
  return { status: 200, headers: { "Content-Type": contentType }, body };
}

/** A page for people. */
export function page(html: string, status = 200): Reply {
  return { status, headers: { "Content-Type": "text/html; charset=utf-8" }, body: html };
}
