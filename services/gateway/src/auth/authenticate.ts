import { hash } from "node:crypto";
import { key_invalid } from "@devmesh/contracts/keys";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import { isReason, ServiceError } from "@devmesh/service-kit/errors";
import type { TraceContext } from "@devmesh/service-kit/trace";
import type { GatewayClients } from "../http/handlers.ts";
import type { KeyCache, VerifiedKey } from "./key-cache.ts";
import type { RateLimit } from "./rate-limit.ts";

/** Timeout of a verification, in milliseconds; all requests with the key share it. */
const verificationMs = 3_000;

export interface AuthenticationOptions {
  readonly keys: GatewayClients["keys"];
  readonly cache: KeyCache;
  /** Counts failed attempts by address. */
  readonly attempts: RateLimit;
  readonly clock: Clock;
}

interface Attempt {
  /** Rate limit key of failed attempts. */
  readonly address: string;
  readonly trace: TraceContext;
  readonly requestId: string;
}

/** Verifies a key; throws `key_invalid`, or `rate_limited` after too many failed attempts of the address. */
export type Authenticate = (key: string, attempt: Attempt) => VerifiedKey | Promise<VerifiedKey>;

/**
 * `keys.verify` with a cache (ADR 21). A cached key costs a digest; any other is verified once for all requests that
 * present it at the same time.
 */
export function createAuthentication({ keys, cache, attempts, clock }: AuthenticationOptions): Authenticate {
  const underWay = new Map<string, Promise<VerifiedKey>>();

  async function verify(key: string, digest: string, attempt: Attempt): Promise<VerifiedKey> {
    using call = createCallContext({
      timeoutMs: verificationMs,
      trace: attempt.trace,
      requestId: attempt.requestId,
      clock,
    });
    const verification = cache.begin();
    let verified: VerifiedKey | undefined;
    try {
      const { key_id, principal, expires_at, name } = await keys.verify({ key }, call);
      const expiresAtMs = expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at);
      if (expiresAtMs > clock.now().getTime())
        verified = { keyId: key_id, principal, expiresAtMs, ...(name !== undefined && { name }) };
    } finally {
      if (!cache.finish(verification, digest, verified)) verified = undefined;
    }
    if (verified === undefined) throw keyInvalid();
    return verified;
  }

  async function ask(key: string, digest: string, attempt: Attempt): Promise<VerifiedKey> {
    attempts.assertNotEmpty(attempt.address);
    let asked = underWay.get(digest);
    if (asked === undefined) {
      asked = verify(key, digest, attempt).finally(() => underWay.delete(digest));
      underWay.set(digest, asked);
    }
    try {
      return await asked;
    } catch (error) {
      if (isReason(error, "key_invalid")) attempts.charge(attempt.address);
      throw error;
    }
  }

  return (key, attempt) => {
    const digest = hash("sha256", key, "base64url");
    return cache.find(digest) ?? ask(key, digest, attempt);
  };
}

function keyInvalid(): ServiceError {
  return new ServiceError({ code: key_invalid.code, reason: "key_invalid", message: key_invalid.when });
}
