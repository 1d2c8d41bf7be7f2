import type { KeyKind, Principal } from "@devmesh/contracts/principal";
import type { Clock } from "@devmesh/service-kit/clock";

/** A key or session that `keys` accepted. */
export interface VerifiedKey {
  /** In `keys.revoked`; also the rate limit key. */
  readonly keyId: string;
  readonly kind: KeyKind;
  /** Of a session that of its master key. */
  readonly principal: Principal;
  /** Unix milliseconds; infinite for a key without an end. */
  readonly expiresAtMs: number;
  /** The key that changes are listed under: of a session its master key. */
  readonly authorKeyId: string;
  /** What people call that key. */
  readonly name?: string;
}

/** A key of the cache, and what must be done before it is used. */
export interface CachedKey {
  readonly key: VerifiedKey;
  /** To be verified again now; set at most once a second. */
  readonly isDue: boolean;
  /** Past its TTL: valid only while `keys` does not answer. */
  readonly isOverdue: boolean;
}

interface CacheEntry {
  readonly key: VerifiedKey;
  /** When it is due, on the monotonic clock. */
  dueMs: number;
  /** End of the TTL on the monotonic clock. */
  readonly untilMs: number;
}

/** Share of the TTL after which a key that is in use is verified again, so that no request waits at its end. */
const dueAfter = 5 / 6;

/** Shortest time between two verifications of a cached key, in milliseconds. */
const dueAgainMs = 1_000;

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
 * Verified keys by the digest of the secret, for twice the TTL; the least recently used one is evicted first. Holds no
 * secret. Revocations drop entries, and the answers of verifications that began before them (ADR 21).
 */
export class KeyCache {
  readonly #options: KeyCacheOptions;
  readonly #entries = new Map<string, CacheEntry>();
  readonly #digestOfKey = new Map<string, Set<string>>();
  readonly #underWay = new Set<Verification>();

  constructor(options: KeyCacheOptions) {
    this.#options = options;
  }

  /** The key of that digest, if it is cached and has not expired. */
  find(digest: string): CachedKey | undefined {
    const entry = this.#entries.get(digest);
    if (entry === undefined) return undefined;
    const { clock, ttlMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (entry.untilMs + ttlMs <= nowMs || entry.key.expiresAtMs <= clock.now().getTime()) {
      this.#drop(digest, entry);
      return undefined;
    }
    this.#entries.delete(digest);
    this.#entries.set(digest, entry);
    const isDue = entry.dueMs <= nowMs;
    if (isDue) entry.dueMs = nowMs + dueAgainMs;
    return { key: entry.key, isDue, isOverdue: entry.untilMs <= nowMs };
  }

  /** Whether the key of that digest may be used without asking first. */
  has(digest: string): boolean {
    const entry = this.#entries.get(digest);
    return entry !== undefined && entry.untilMs + this.#options.ttlMs > this.#options.clock.monotonicMs();
  }

  /** Drops a key that is no longer valid. */
  forget(digest: string): void {
    const entry = this.#entries.get(digest);
    if (entry !== undefined) this.#drop(digest, entry);
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
    const nowMs = clock.monotonicMs();
    this.#entries.set(digest, { key, dueMs: nowMs + ttlMs * dueAfter, untilMs: nowMs + ttlMs });
    const digests = this.#digestOfKey.get(key.keyId);
    if (digests === undefined) this.#digestOfKey.set(key.keyId, new Set([digest]));
    else digests.add(digest);
  }

  #drop(digest: string, entry: CacheEntry): void {
    this.#entries.delete(digest);
    const digests = this.#digestOfKey.get(entry.key.keyId);
    digests?.delete(digest);
    if (digests?.size === 0) this.#digestOfKey.delete(entry.key.keyId);
  }
}
