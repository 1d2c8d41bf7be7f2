import type { Exchange } from "./exchange.ts";

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
