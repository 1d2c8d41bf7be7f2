import type { IncomingMessage } from "node:http";
import { keyNames } from "@devmesh/contracts/principal";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import type { Exchange } from "../http/exchange.ts";
import { RequestRefused } from "../http/gateway-errors.ts";
import type { Authenticate } from "./authenticate.ts";
import type { RateLimit } from "./rate-limit.ts";

export interface CallerCheckOptions {
  readonly authenticate: Authenticate;
  readonly masterRate: RateLimit;
  readonly keyRate: RateLimit;
  /** For requests without a key. */
  readonly addressRate: RateLimit;
}

/** Fills in who calls; `accessToken` is the query parameter. Throws the refusal. */
export type CheckCaller = (exchange: Exchange, accessToken: string | undefined) => void | Promise<void>;

/** The key of a request, its kind, and its rate. */
export function callerCheck({ auth, stream }: RouteDeclaration, options: CallerCheckOptions): CheckCaller {
  const { authenticate, masterRate, keyRate, addressRate } = options;
  if (auth === null) {
    return (exchange) => addressRate.take(exchange.address, exchange.headers);
  }
  const needed = auth.map((kind) => keyNames[kind]).join(" or ");
  return async (exchange, accessToken) => {
    const key = presentedKey(exchange.request, accessToken);
    if (key === undefined) {
      addressRate.take(exchange.address, exchange.headers);
      throw new RequestRefused("key_missing");
    }
    const found = authenticate(key, exchange);
    const { kind, principal, keyId, authorKeyId, expiresAtMs, name } =
      found instanceof Promise ? await found : found;
    exchange.keyKind = kind;
    const rate = principal.kind === "master" ? masterRate : keyRate;
    rate.take(keyId, exchange.headers);
    exchange.charge = (tokens) => rate.surcharge(keyId, tokens, exchange.headers);
    if (!auth.includes(kind)) {
      throw new RequestRefused("wrong_key_kind", {
        detail: `This route needs a ${needed}; the key is a ${keyNames[kind]}.`,
      });
    }
    exchange.principal = principal;
    exchange.authorKeyId = authorKeyId;
    exchange.keyId = keyId;
    exchange.keyName = name;
    if (!stream) return;
    // Failed attempts of others at the same address must not keep the stream of a revoked key open.
    const { trace, requestId } = exchange;
    const again = { address: `listener ${keyId}`, trace, requestId };
    exchange.caller = { keyId, expiresAtMs, verifyAgain: () => authenticate(key, again) };
  };
}

/** Longer than any key. */
const maxKeyLength = 512;

/**
 * The key from the `Authorization` header or the query parameter `access_token`; undefined without a well-formed one.
 * Throws `key_ambiguous` when there are several that differ.
 */
function presentedKey(
  request: Pick<IncomingMessage, "headers" | "rawHeaders">,
  accessToken: string | undefined,
): string | undefined {
  const { authorization } = request.headers;
  if (authorization !== undefined && differsFromOther(authorization, request.rawHeaders)) {
    throw new RequestRefused("key_ambiguous");
  }
  const bearer = authorization === undefined ? undefined : bearerToken(authorization);
  const token = accessToken === "" ? undefined : accessToken;
  if (authorization !== undefined && token !== undefined && bearer !== token) {
    throw new RequestRefused("key_ambiguous");
  }
  const key = bearer ?? token;
  return key === undefined || key.length > maxKeyLength ? undefined : key;
}

/** Whether another `Authorization` header has another value; Node shows only the first. */
function differsFromOther(first: string, rawHeaders: readonly string[]): boolean {
  return rawHeaders.some(
    (name, at) =>
      at % 2 === 0 &&
      name.length === "authorization".length &&
      name.toLowerCase() === "authorization" &&
      rawHeaders[at + 1]?.trim() !== first,
  );
}

function bearerToken(authorization: string): string | undefined {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1];
}
