import { hash } from "node:crypto";
import type { keys } from "@devmesh/contracts/keys";
import { key_invalid } from "@devmesh/contracts/keys";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import { isReason, ServiceError } from "@devmesh/service-kit/errors";
import type { Client } from "@devmesh/service-kit/implementation";
import type { TraceContext } from "@devmesh/service-kit/trace";
import type { KeyCache, VerifiedKey } from "./key-cache.ts";
import type { RateLimit } from "./rate-limit.ts";

/** How long a verification may take, in milliseconds; it is shared by all requests that wait for it. */
const verificationMs = 3_000;

/** What authentication works with. */
export interface AuthenticationOptions {
  readonly keys: Pick<Client<typeof keys>, "verify">;
  readonly cache: KeyCache;
  /** Counts failed attempts by address. */
  readonly attempts: RateLimit;
  readonly clock: Clock;
}

/** The request that presents a key, as far as authentication needs it. */
interface Attempt {
  /** What failed attempts are counted on: an address, or what stands for a listener. */
  readonly address: string;
  readonly trace: TraceContext;
  readonly requestId: string;
}

/** Whom a key stands for; throws `key_invalid`, or `rate_limited` where too many attempts of the address failed. */
export type Authenticate = (key: string, attempt: Attempt) => VerifiedKey | Promise<VerifiedKey>;

/**
 * Authentication with a cache in front of `keys.verify` (ADR 21). A key that is remembered costs a digest; one that is
 * not is asked for once, however many requests present it at the same time.
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
      const { key_id, principal, expires_at } = await keys.verify({ key }, call);
      const expiresAtMs = expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at);
      if (expiresAtMs > clock.now().getTime()) verified = { keyId: key_id, principal, expiresAtMs };
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
