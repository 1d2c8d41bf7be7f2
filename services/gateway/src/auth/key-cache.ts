import type { Principal } from "@devmesh/contracts/principal";
import type { Clock } from "@devmesh/service-kit/clock";

/** A key that `keys.verify` found good. */
export interface VerifiedKey {
  /** What `keys.revoked` names, and what the key's rate is counted on. */
  readonly keyId: string;
  readonly principal: Principal;
  /** Unix milliseconds; infinite for a key without an end. */
  readonly expiresAtMs: number;
}

interface Entry {
  readonly key: VerifiedKey;
  readonly believedUntilMs: number;
}

/** A verification under way. What is revoked meanwhile is not believed when its answer arrives. */
export interface Verification {
  /** Key ids revoked since it began. */
  readonly revoked: Set<string>;
  /** Set when revocations may have been missed since it began. */
  stale: boolean;
}

/** What a key cache is made from. */
export interface KeyCacheOptions {
  readonly maxKeys: number;
  readonly believedForMs: number;
  readonly clock: Clock;
}

/**
 * Verified keys by the digest of the secret, least recently used ones forgotten first. Holds no secret.
 * Revocations drop entries at once, and also the answers of verifications that began before them (ADR 21).
 */
export class KeyCache {
  readonly #options: KeyCacheOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #digestOfKey = new Map<string, Set<string>>();
  readonly #underWay = new Set<Verification>();

  constructor(options: KeyCacheOptions) {
    this.#options = options;
  }

  /** The key of that digest, if it is remembered and has not expired. */
  find(digest: string): VerifiedKey | undefined {
    const entry = this.#entries.get(digest);
    if (entry === undefined) return undefined;
    const { clock } = this.#options;
    if (entry.believedUntilMs <= clock.monotonicMs() || entry.key.expiresAtMs <= clock.now().getTime()) {
      this.#drop(digest, entry);
      return undefined;
    }
    this.#entries.delete(digest);
    this.#entries.set(digest, entry);
    return entry.key;
  }

  /** Begins a verification; give it back to `finish`, whatever its end. */
  begin(): Verification {
    const verification: Verification = { revoked: new Set(), stale: false };
    this.#underWay.add(verification);
    return verification;
  }

  /** Ends a verification. Answers whether the key still stands; remembers it if so. */
  finish(verification: Verification, digest: string, key: VerifiedKey | undefined): boolean {
    this.#underWay.delete(verification);
    if (key === undefined || verification.revoked.has(key.keyId)) return false;
    if (!verification.stale) this.#remember(digest, key);
    return true;
  }

  /** Forgets keys that were revoked. */
  revoke(keyIds: readonly string[]): void {
    for (const keyId of keyIds) {
      for (const digest of this.#digestOfKey.get(keyId) ?? []) this.#entries.delete(digest);
      this.#digestOfKey.delete(keyId);
      for (const verification of this.#underWay) verification.revoked.add(keyId);
    }
  }

  /** Forgets all, since revocations may have been missed. */
  clear(): void {
    this.#entries.clear();
    this.#digestOfKey.clear();
    for (const verification of this.#underWay) verification.stale = true;
  }

  /** Keys held now. */
  get size(): number {
    return this.#entries.size;
  }

  #remember(digest: string, key: VerifiedKey): void {
    const { clock, believedForMs, maxKeys } = this.#options;
    const known = this.#entries.get(digest);
    if (known !== undefined) this.#drop(digest, known);
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size < maxKeys) break;
      this.#drop(oldest, entry);
    }
    this.#entries.set(digest, { key, believedUntilMs: clock.monotonicMs() + believedForMs });
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
