import type { Violation } from "@devmesh/contracts/model/violation";

/** Refusals of the gateway itself; those of services are in their contracts. */
export const gatewayErrors = {
  invalid_request: {
    status: 400,
    when: "A path parameter, query parameter or member of the body breaks its rule; `errors` lists each one.",
  },
  body_malformed: {
    status: 400,
    when: "The body is not JSON in UTF-8, or has numbers that a double cannot hold, which `errors` lists.",
  },
  body_too_deep: { status: 400, when: "Objects and arrays of the body are nested deeper than 200 levels." },
  handshake_invalid: {
    status: 400,
    when: "The handshake is not of a WebSocket of version 13 (RFC 6455, 4.1).",
  },
  body_missing: { status: 400, when: "The route needs a body and none came." },
  path_malformed: { status: 400, when: "The path holds a percent-encoding that is not UTF-8." },
  request_malformed: { status: 400, when: "What came is not an HTTP request." },
  key_ambiguous: {
    status: 400,
    when: "Two `Authorization` headers, or one and `access_token`, hold different keys.",
  },
  key_missing: { status: 401, when: "The route needs a key and none came in a form that can be read." },
  wrong_key_kind: { status: 403, when: "The key is valid but of a kind that this route does not take." },
  route_not_found: { status: 404, when: "There is no such path." },
  method_not_allowed: { status: 405, when: "The path exists but not with this method; see `Allow`." },
  not_acceptable: {
    status: 406,
    when: "The route is a stream: ask for it by a WebSocket's handshake, or with `Accept: text/event-stream`.",
  },
  request_incomplete: { status: 408, when: "The request did not arrive in time." },
  body_too_large: { status: 413, when: "The body exceeds 512 KB, or holds more than 20,000 members." },
  unsupported_media_type: {
    status: 415,
    when: "The body is not declared as what the route takes, mostly `application/json`, or is compressed.",
  },
  range_not_satisfiable: { status: 416, when: "The file has no byte of the range; see `Content-Range`." },
  rate_limited: { status: 429, when: "The key, or the address, has used up its rate; see `Retry-After`." },
  too_many_listeners: {
    status: 429,
    when: "The key, or the gateway, has as many listeners of the stream as it may have.",
  },
  too_many_answers: {
    status: 429,
    when: "The key, or the gateway, is being sent as many answers over 64 KB as may be at one time.",
  },
  too_many_uploads: {
    status: 429,
    when: "The gateway receives as many contents of firmware as it may at one time.",
  },
  too_many_downloads: {
    status: 429,
    when: "The ticket, or the gateway, has as many downloads of firmware under way as may be at one time.",
  },
  too_many_bodies: {
    status: 429,
    when: "The key is sending more of large bodies at one time than it may, or has the most of what the gateway can receive.",
  },
  header_too_large: { status: 431, when: "The request line and its headers exceed 16 KB." },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly when: string }>>;

export type GatewayReason = keyof typeof gatewayErrors;

export interface RefusalOptions {
  /** One sentence instead of the reason's own. Must hold no secret. */
  readonly detail?: string;
  /** Pointers into the body; `/query/<name>` and `/path/<name>` for parameters of the URL (api.md, Conventions). */
  readonly violations?: readonly Violation[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** A request that the gateway refuses without calling a service. */
export class RequestRefused extends Error {
  override readonly name = "RequestRefused";
  readonly reason: GatewayReason;
  readonly violations: readonly Violation[] | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(reason: GatewayReason, options: RefusalOptions = {}) {
    super(
      options.detail ?? gatewayErrors[reason].when,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.reason = reason;
    this.violations = options.violations;
    this.headers = options.headers;
  }
}

/** A refusal whose detail names the first violation. */
export function invalidRequest(
  violations: readonly Violation[],
  reason: GatewayReason = "invalid_request",
): RequestRefused {
  const detail = firstOf(violations);
  return new RequestRefused(reason, { violations, ...(detail !== undefined && { detail }) });
}

/** The first violation as a sentence, for callers that show only the message; undefined where there is none. */
export function firstOf([first, ...others]: readonly Violation[]): string | undefined {
  if (first === undefined) return undefined;
  const where = first.pointer === "" ? "The body" : `\`${first.pointer}\``;
  const more = others.length === 0 ? "" : ` (and ${others.length} more, see \`errors\`)`;
  return `${where}: ${first.detail}${more}.`;
}
