import { createHash } from "node:crypto";
import type { Reply } from "./exchange.ts";

/**
 * Whether the value of an `If-None-Match` names a tag (RFC 9110, 13.1.2): `*` names any, a list each of its members,
 * and a weak tag the strong one of that text. A malformed value names nothing.
 */
export function namesTag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === "*") return true;
  return [...ifNoneMatch.matchAll(/"[^"]*"/g)].some(([tag]) => tag === etag);
}

interface ConditionalRequest {
  readonly method: string;
  readonly header: (name: string) => string | undefined;
}

/** The answer to a GET or HEAD, or 304 without its content where the client names its tag. */
export function unlessKnown({ method, header }: ConditionalRequest, reply: Reply): Reply {
  const { ETag: etag } = reply.headers;
  if (etag === undefined || (method !== "GET" && method !== "HEAD")) return reply;
  if (!namesTag(header("if-none-match"), etag)) return reply;
  const kept = Object.entries(reply.headers).filter(([name]) => !name.startsWith("Content-"));
  return { status: 304, headers: Object.fromEntries(kept), ...(reply.release && { release: reply.release }) };
}

/** Headers whose change a client would miss that is answered 304. */
const taggedHeaders = ["Link", "Total-Count"];

/** A reply with a tag of its content, where that is whole. */
export function withTag(reply: Reply): Reply {
  const { headers, body } = reply;
  if (typeof body !== "string" && !(body instanceof Uint8Array)) return reply;
  const hash = createHash("sha256").update(body);
  for (const name of taggedHeaders) hash.update(`\n${headers[name] ?? ""}`);
  return { ...reply, headers: { ...headers, ETag: `"${hash.digest("base64url").slice(0, 22)}"` } };
}
