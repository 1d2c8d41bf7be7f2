import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { key_invalid, type keys } from "@devmesh/contracts/keys";
import { keyPrefixes } from "@devmesh/contracts/model/api-key";
import { keyNames } from "@devmesh/contracts/principal";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { type Clock, withTimeout } from "@devmesh/service-kit/clock";
import { isReason, ServiceError } from "@devmesh/service-kit/errors";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import type { TraceContext } from "@devmesh/service-kit/tracing/trace";
import type { Exchange } from "../http/exchange.ts";
import { RequestRefused } from "../http/gateway-errors.ts";
import type { KeyCache, VerifiedKey } from "./key-cache.ts";
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
export function callerCheck(
  { auth, stream, secretPath }: RouteDeclaration,
  options: CallerCheckOptions,
): CheckCaller {
  const { authenticate, masterRate, keyRate, addressRate } = options;
  if (auth === null) {
    if (secretPath) return () => undefined;
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
export function presentedKey(
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

/** Timeout of a verification, in milliseconds; all requests with the key share it. */
const verificationMs = 3_000;

/** Longest wait for `keys` where a cached key can be used instead, or where `keys` is silent; in milliseconds. */
const patienceMs = 500;

export interface AuthenticationOptions {
  readonly keys: Client<typeof keys, "verify" | "verifySession">;
  readonly cache: KeyCache;
  /** Counts failed attempts by address. */
  readonly attempts: RateLimit;
  readonly clock: Clock;
}

interface KeyAttempt {
  /** Rate limit key of failed attempts. */
  readonly address: string;
  readonly trace: TraceContext;
  readonly requestId: string;
}

/**
 * Verifies a key; throws `key_invalid`, `rate_limited` after too many failed attempts of the address, or `unavailable`
 * where `keys` does not answer.
 */
export type Authenticate = (key: string, attempt: KeyAttempt) => VerifiedKey | Promise<VerifiedKey>;

/**
 * `keys.verify` with a cache (ADR 21). A cached key costs a digest; any other is verified once for all requests that
 * present it at the same time.
 */
export function createAuthentication({ keys, cache, attempts, clock }: AuthenticationOptions): Authenticate {
  const underWay = new Map<string, Promise<VerifiedKey>>();
  /** Whether the last verification had no answer: keys past their TTL are then valid. */
  let isSilent = false;

  async function verifyKey(key: string, call: CallContext): Promise<VerifiedKey> {
    const { key_id, principal, expires_at, name } = await keys.verify({ key }, call);
    return {
      keyId: key_id,
      kind: principal.kind,
      principal,
      expiresAtMs: expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at),
      authorKeyId: key_id,
      ...(name !== undefined && { name }),
    };
  }

  async function verifySession(key: string, call: CallContext): Promise<VerifiedKey> {
    const { id, master_key_id, master_key_name, expires_at } = await keys.verifySession({ key }, call);
    return {
      keyId: id,
      kind: "session",
      principal: { kind: "master" },
      expiresAtMs: Date.parse(expires_at),
      authorKeyId: master_key_id,
      ...(master_key_name !== null && { name: master_key_name }),
    };
  }

  async function verify(key: string, digest: string, attempt: KeyAttempt): Promise<VerifiedKey> {
    using call = createCallContext({
      timeoutMs: verificationMs,
      trace: attempt.trace,
      requestId: attempt.requestId,
      clock,
    });
    const verification = cache.begin();
    let verified: VerifiedKey | undefined;
    try {
      const found = await (isSession(key) ? verifySession(key, call) : verifyKey(key, call));
      isSilent = false;
      if (found.expiresAtMs > clock.now().getTime()) verified = found;
    } catch (error) {
      if (isReason(error, "deadline_exceeded")) throw silence(error);
      isSilent = isReason(error, "unavailable");
      if (isReason(error, "key_invalid")) cache.forget(digest);
      throw error;
    } finally {
      if (!cache.finish(verification, digest, verified)) verified = undefined;
    }
    if (verified === undefined) throw keyInvalid();
    return verified;
  }

  function verifyOnce(key: string, digest: string, attempt: KeyAttempt): Promise<VerifiedKey> {
    let asked = underWay.get(digest);
    if (asked === undefined) {
      asked = verify(key, digest, attempt).finally(() => underWay.delete(digest));
      underWay.set(digest, asked);
    }
    return asked;
  }

  function silence(cause?: unknown): ServiceError {
    isSilent = true;
    return ServiceError.of("unavailable", { service: "keys", cause });
  }

  /** While `keys` is silent a request waits less; the answer that comes later is cached for the next one. */
  async function ask(key: string, digest: string, attempt: KeyAttempt): Promise<VerifiedKey> {
    attempts.assertNotEmpty(attempt.address);
    const asked = verifyOnce(key, digest, attempt);
    try {
      if (isSilent && !(await withTimeout(patienceMs, asked, clock))) throw silence();
      return await asked;
    } catch (error) {
      if (isReason(error, "key_invalid")) attempts.charge(attempt.address);
      throw error;
    }
  }

  /** For a key past its TTL. */
  async function askAgain(key: string, digest: string, attempt: KeyAttempt): Promise<VerifiedKey> {
    const asked = verifyOnce(key, digest, attempt);
    try {
      if (await withTimeout(patienceMs, asked, clock)) return await asked;
      silence();
    } catch (error) {
      if (!isReason(error, "unavailable")) throw error;
    }
    // It may have been revoked meanwhile.
    return cache.find(digest)?.key ?? ask(key, digest, attempt);
  }

  return (key, attempt) => {
    const digest = digestOf(key);
    const cached = cache.find(digest);
    if (cached === undefined) return ask(key, digest, attempt);
    if (cached.isOverdue && !isSilent) return askAgain(key, digest, attempt);
    if (cached.isDue) verifyOnce(key, digest, attempt).catch(() => undefined);
    return cached.key;
  };
}

/** How a key is found in the cache. */
export function digestOf(key: string): string {
  return hash("sha256", key, "base64url");
}

function isSession(key: string): boolean {
  return key.startsWith(`${keyPrefixes.session}_`);
}

function keyInvalid(): ServiceError {
  return new ServiceError({ code: key_invalid.code, reason: "key_invalid", message: key_invalid.when });
}
