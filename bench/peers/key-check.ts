import { hash } from "node:crypto";

/** The owner of a key. */
export interface Caller {
  readonly keyId: string;
}

/** How long a verified key is taken from the cache, in milliseconds: as in the mesh. */
const ttlMs = 60_000;

/**
 * Checks the header `Authorization`: a digest, looked up in a cache with expiry. A miss asks `verify`. Null: no valid
 * key.
 */
export function createKeyCheck(verify: (digest: string) => Promise<Caller | null>) {
  const cached = new Map<string, { readonly caller: Caller; readonly untilMs: number }>();
  return (authorization: string | undefined): Caller | null | Promise<Caller | null> => {
    if (!authorization?.startsWith("Bearer ")) return null;
    const digest = digestOf(authorization.slice("Bearer ".length));
    const entry = cached.get(digest);
    if (entry && entry.untilMs > performance.now()) return entry.caller;
    return verify(digest).then((caller) => {
      if (caller) cached.set(digest, { caller, untilMs: performance.now() + ttlMs });
      return caller;
    });
  };
}

/** What the store holds of a key. */
export function digestOf(key: string): string {
  return hash("sha256", key, "base64url");
}
