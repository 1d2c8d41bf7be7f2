import type { Principal } from "@devmesh/contracts/principal";
import type { Clock } from "@devmesh/service-kit/clock";

/** A key that `keys.verify` accepted. */
export interface VerifiedKey {
  /** In `keys.revoked`; also the rate limit key. */
  readonly keyId: string;
  readonly principal: Principal;
  /** Unix milliseconds; infinite for a key without an end. */
  readonly expiresAtMs: number;
  /** What people call it. */
  readonly name?: string;
}

interface Entry {
  readonly key: VerifiedKey;
  /** End of the TTL on the monotonic clock. */
  readonly untilMs: number;
}

/** A running verification. A key that is revoked meanwhile is invalid when the answer arrives. */
export interface Verification {
  /** Key ids revoked since it began. */
  readonly revoked: Set<string>;
  /** Set when revocations may have been missed since it began. */
  stale: boolean;
}

export interface KeyCacheOptions {
  readonly maxKeys: number;
  readonly ttlMs: number;
  readonly clock: Clock;
}

/**
 * Verified keys by the digest of the secret; the least recently used one is evicted first. Holds no secret. Revocations
 * drop entries, and the answers of verifications that began before them (ADR 21).
 */
export class KeyCache {
  readonly #options: KeyCacheOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #digestOfKey = new Map<string, Set<string>>();
  readonly #underWay = new Set<Verification>();

  constructor(options: KeyCacheOptions) {
    this.#options = options;
  }

  /** The key of that digest, if it is cached and has not expired. */
  find(digest: string): VerifiedKey | undefined {
    const entry = this.#entries.get(digest);
    if (entry === undefined) return undefined;
    const { clock } = this.#options;
    if (entry.untilMs <= clock.monotonicMs() || entry.key.expiresAtMs <= clock.now().getTime()) {
      this.#drop(digest, entry);
      return undefined;
    }
    this.#entries.delete(digest);
    this.#entries.set(digest, entry);
    return entry.key;
  }

  /** Begins a verification; call `finish` with it, also after a failure. */
  begin(): Verification {
    const verification: Verification = { revoked: new Set(), stale: false };
    this.#underWay.add(verification);
    return verification;
  }

  /** Ends a verification. Returns whether the key is still valid, and caches it if so. */
  finish(verification: Verification, digest: string, key: VerifiedKey | undefined): boolean {
    this.#underWay.delete(verification);
    if (key === undefined || verification.revoked.has(key.keyId)) return false;
    if (!verification.stale) this.#store(digest, key);
    return true;
  }

  /** Drops keys that were revoked. */
  revoke(keyIds: readonly string[]): void {
    for (const keyId of keyIds) {
      for (const digest of this.#digestOfKey.get(keyId) ?? []) this.#entries.delete(digest);
      this.#digestOfKey.delete(keyId);
      for (const verification of this.#underWay) verification.revoked.add(keyId);
    }
  }

  /** Drops all keys, since revocations may have been missed. */
  clear(): void {
    this.#entries.clear();
    this.#digestOfKey.clear();
    for (const verification of this.#underWay) verification.stale = true;
  }

  get size(): number {
    return this.#entries.size;
  }

  #store(digest: string, key: VerifiedKey): void {
    const { clock, ttlMs, maxKeys } = this.#options;
    const known = this.#entries.get(digest);
    if (known !== undefined) this.#drop(digest, known);
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size < maxKeys) break;
      this.#drop(oldest, entry);
    }
    this.#entries.set(digest, { key, untilMs: clock.monotonicMs() + ttlMs });
    const digests = this.#digestOfKey.get(key.keyId);
    if (digests === undefined) this.#digestOfKey.set(key.keyId, new Set([digest]));
    else digests.add(digest);
  }

  #drop(digest: string, entry: Entry): void {
    this.#entries.delete(digest);
    const digests = this.#digestOfKey.get(entry.key.keyId);
    digests?.delete(digest);
    if (digests?.size === 0) this.#digestOfKey.delete(entry.key.keyId);
  }
}
