import type { keys } from "@devmesh/contracts/keys";
import { maxSessionDays, maxSessions, type Session } from "@devmesh/contracts/model/session";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { AccountEvents } from "../account-events.ts";
import { createSecret, digestSecret } from "../credentials/secret.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { StoredSession } from "../store/session-store.ts";
import type { KeyUses } from "./key-uses.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** Constructor arguments of the methods of sessions. */
export interface SessionsOptions {
  readonly store: Pick<KeyStore, "apiKeys" | "sessions">;
  readonly clock: Clock;
  /** Makes ids whose text order is the order of their creation. */
  readonly newId: () => string;
  readonly sessionUses: KeyUses;
  readonly events: AccountEvents;
}

/** Verifies, begins, lists and ends sessions of the dashboard (api.md, Sessions). */
export function createSessions(
  options: SessionsOptions,
): Pick<Implementation<typeof keys>, "verifySession" | "createSession" | "listSessions" | "endSession"> {
  const { store, clock, newId, sessionUses, events } = options;

  const withLatestUse = (session: StoredSession): StoredSession => {
    const last_used = Math.max(session.last_used ?? 0, sessionUses.lastOf(session.id) ?? 0);
    return { ...session, last_used: last_used === 0 ? null : last_used };
  };

  return {
    async verifySession({ key }, context) {
      const session = await store.sessions.findByDigest(digestSecret(key), context.signal);
      if (session === null || session.expires_at <= clock.now().getTime()) return context.fail("key_invalid");
      const master = await store.apiKeys.find(session.master_key_id, context.signal);
      if (master === null) return context.fail("key_invalid");
      sessionUses.note(session.id);
      const { id, master_key_id, expires_at } = describe(session);
      return { id, master_key_id, expires_at, master_key_name: master.name };
    },

    async createSession({ master_key_id, name = null, days = maxSessionDays }, context) {
      const now = clock.now().getTime();
      const master = await store.apiKeys.find(master_key_id, context.signal);
      const masterEnds = master?.expires_at ?? Number.POSITIVE_INFINITY;
      if (master === null || master.device_id !== null || masterEnds <= now)
        return context.fail("key_invalid");
      const key = createSecret("session");
      const session: StoredSession = {
        id: newId(),
        digest: digestSecret(key),
        master_key_id,
        name,
        created_at: now,
        last_used: null,
        expires_at: Math.min(now + days * dayMs, masterEnds),
      };
      await store.sessions.insert(session, context.signal);
      const stored = await store.sessions.list(context.signal);
      const lasting = stored.filter(({ expires_at }) => expires_at > now).map(withLatestUse);
      const surplus = leastUsed(lasting, maxSessions);
      await store.sessions.deleteAll(surplus, context.signal);
      const revoked = events.revoked(surplus, context);
      events.keyChanged(session.id, "created", context);
      await revoked;
      return { ...describe(session), key };
    },

    async listSessions(_input, { signal }) {
      const now = clock.now().getTime();
      const stored = await store.sessions.list(signal);
      return stored.filter(({ expires_at }) => expires_at > now).map((one) => describe(withLatestUse(one)));
    },

    async endSession({ id }, context) {
      if ((await store.sessions.deleteAll([id], context.signal)) === 0)
        return context.fail("session_not_found");
      const revoked = events.revoked([id], context);
      events.keyChanged(id, "deleted", context);
      await revoked;
      return {};
    },
  };
}

/** Deletes the sessions of a deleted master key and returns their ids. They are invalid without it already. */
export async function endSessionsOf(
  { sessions }: Pick<KeyStore, "sessions">,
  masterKeyId: string,
  signal: AbortSignal,
): Promise<string[]> {
  const stored = await sessions.list(signal);
  const ids = stored.filter(({ master_key_id }) => master_key_id === masterKeyId).map(({ id }) => id);
  await sessions.deleteAll(ids, signal);
  return ids;
}

/** Deletes sessions that have expired, or that a crash left without their master key. */
export async function deleteInvalidSessions(
  { sessions, apiKeys }: Pick<KeyStore, "sessions" | "apiKeys">,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  const invalid: string[] = [];
  for (const { id, master_key_id, expires_at } of await sessions.list(signal))
    if (expires_at <= now || (await apiKeys.find(master_key_id, signal)) === null) invalid.push(id);
  await sessions.deleteAll(invalid, signal);
}

/** Ids of those that were not used for longest, beyond the first `most`. */
function leastUsed(sessions: readonly StoredSession[], most: number): string[] {
  const usedAt = ({ last_used, created_at }: StoredSession) => Math.max(last_used ?? 0, created_at);
  return sessions
    .toSorted((one, other) => usedAt(other) - usedAt(one))
    .slice(most)
    .map(({ id }) => id);
}

function describe(session: StoredSession): Session {
  const { id, master_key_id, name, created_at, last_used, expires_at } = session;
  return {
    id,
    master_key_id,
    name,
    created_at: new Date(created_at).toISOString(),
    last_used: last_used === null ? null : new Date(last_used).toISOString(),
    expires_at: new Date(expires_at).toISOString(),
  };
}
