import { createSafeContext } from "@mantine/core";
import { type ReactNode, useCallback, useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { z } from "zod";
import { createApiClient } from "../api/api-client.ts";

/** Name of the key in the storage of the browser's tab; the key is never in a URL. */
const tabStorageKey = "devmesh.master-key";

/** Name of a {@link LastingKey} in the storage of the browser. */
const browserStorageKey = "devmesh.lasting-key";

/**
 * Name of the time of the last sign-out, in both storages: a tab that shows another site, or was discarded by the
 * browser, gets no message of a sign-out, and must not have its session again.
 */
const signOutStorageKey = "devmesh.signed-out";

/** How long a new tab waits for a session of another one, in milliseconds; a later one is still taken. */
const askMs = 250;

/** A key made for one browser, in which the user stays signed in. */
const LastingKey = z.object({ id: z.string(), key: z.string() });
export type LastingKey = z.infer<typeof LastingKey>;

/** What the tabs of a browser say to each other. The browser delivers it within an origin only. */
const Message = z.discriminatedUnion("kind", [
  /** A new tab asks for a session. */
  z.object({ kind: z.literal("ask") }),
  /** A tab has one: those without a session take it. */
  z.object({ kind: z.literal("session"), key: z.string() }),
  /** The user signed out: all tabs with this key do. */
  z.object({ kind: z.literal("end"), key: z.string() }),
]);

/** The session in this browser. */
interface Session {
  /** The master key; null without a session. */
  readonly key: string | null;
  /** Why the last session ended; null if the user signed out. */
  readonly notice: string | null;
  /** Signs in all tabs; with a lasting key also after the browser was closed. */
  readonly signIn: (session: string | LastingKey) => void;
  /** Ends the session in this tab, and without a notice, which means that the user signs out, in all of them. */
  readonly signOut: (notice?: string) => void;
}

const [SessionContext, useCurrentSession] = createSafeContext<Session>("there is no <SessionProvider>");

/** The session and its changes. */
export const useSession = useCurrentSession;

/** Keeps the key of the session, and hands it to other tabs of the browser. */
export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const [state, setState] = useState<{ key: string | null; notice: string | null }>(() => ({
    key: keyOfTab() ?? lastingKey()?.key ?? null,
    notice: null,
  }));
  const [isAsking, setAsking] = useState(state.key === null);
  const channel = useRef<BroadcastChannel>(null);
  const send = useCallback((message: z.infer<typeof Message>) => channel.current?.postMessage(message), []);

  const begin = useCallback((key: string) => {
    sessionStorage.setItem(tabStorageKey, key);
    sessionStorage.setItem(signOutStorageKey, lastSignOut());
    setState({ key, notice: null });
    setAsking(false);
  }, []);
  const end = useCallback((notice: string | null) => {
    sessionStorage.removeItem(tabStorageKey);
    sessionStorage.removeItem(signOutStorageKey);
    // Drafts outlast the end of a key, but not the user's own sign-out.
    if (notice === null) sessionStorage.clear();
    setState({ key: null, notice });
  }, []);

  const onMessage = useEffectEvent((data: unknown) => {
    const message = Message.safeParse(data).data;
    if (message?.kind === "ask" && state.key !== null) send({ kind: "session", key: state.key });
    if (message?.kind === "session" && state.key === null) begin(message.key);
    if (message?.kind === "end" && message.key === state.key) end(null);
  });
  useEffect(() => {
    const opened = new BroadcastChannel("devmesh.session");
    opened.addEventListener("message", ({ data }) => onMessage(data));
    channel.current = opened;
    opened.postMessage({ kind: "ask" });
    const timer = setTimeout(() => setAsking(false), askMs);
    return () => {
      opened.close();
      clearTimeout(timer);
    };
  }, []);

  const { key } = state;
  const session = useMemo<Session>(
    () => ({
      ...state,
      signIn(given) {
        const begun = typeof given === "string" ? given : given.key;
        if (typeof given !== "string") localStorage.setItem(browserStorageKey, JSON.stringify(given));
        begin(begun);
        send({ kind: "session", key: begun });
      },
      signOut(notice) {
        const lasting = lastingKey();
        if (lasting?.key === key) localStorage.removeItem(browserStorageKey);
        end(notice ?? null);
        if (notice !== undefined || key === null) return;
        localStorage.setItem(signOutStorageKey, String(Date.now()));
        send({ kind: "end", key });
        if (lasting?.key === key) deleteKey(lasting);
      },
    }),
    [state, key, begin, end, send],
  );
  return <SessionContext value={session}>{!isAsking && children}</SessionContext>;
}

/** The key of the session in this tab; null if there is none, or the user has signed out since. */
function keyOfTab(): string | null {
  const key = sessionStorage.getItem(tabStorageKey);
  if (key === null || sessionStorage.getItem(signOutStorageKey) === lastSignOut()) return key;
  sessionStorage.clear();
  return null;
}

function lastSignOut(): string {
  return localStorage.getItem(signOutStorageKey) ?? "";
}

function lastingKey(): LastingKey | null {
  const text = localStorage.getItem(browserStorageKey);
  return text === null ? null : (LastingKey.safeParse(JSON.parse(text)).data ?? null);
}

/** Deletes the key that was made for this browser. Where that fails it ends by its expiry. */
function deleteKey({ id, key }: LastingKey): void {
  void createApiClient({ key })
    .call("deleteKey", { params: { id } })
    .catch(() => {});
}
