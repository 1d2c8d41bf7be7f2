import { createSafeContext } from "@mantine/core";
import { type ReactNode, useCallback, useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { z } from "zod";
import { createMasterKeyMemory, type MasterKeyMemory } from "./master-key-memory.ts";
import { repeatSignOuts, signOutOfServer } from "./sign-outs.ts";

/** Name of a {@link BrowserSession} in the storage of the tab, and of the browser where the user stays signed in. */
const storageKey = "devmesh.session";

/**
 * Name of the time of the last sign-out, in both storages: a tab that shows another site, or was discarded by the
 * browser, gets no message of a sign-out, and must not have its session again.
 */
const signOutStorageKey = "devmesh.signed-out";

/** How long a new tab waits for a session of another one, in milliseconds; a later one is still taken. */
const askMs = 250;

/** A session as the tabs of a browser keep it; its key is never in a URL. */
const BrowserSession = z.object({ id: z.string(), master_key_id: z.string(), key: z.string() });
export type BrowserSession = z.infer<typeof BrowserSession>;

/** What the tabs of a browser say to each other. The browser delivers it within an origin only. */
const Message = z.discriminatedUnion("kind", [
  /** A new tab asks for a session. */
  z.object({ kind: z.literal("ask") }),
  /** A tab has one: those without a session take it. */
  z.object({ kind: z.literal("session"), session: BrowserSession }),
  /** The user signed out: all tabs with this session do. */
  z.object({ kind: z.literal("end"), id: z.string() }),
]);

/** The session in this browser. */
interface CurrentSession {
  /** Null without a session. */
  readonly session: BrowserSession | null;
  /** What the sign-in page says about the last session; null for nothing. */
  readonly notice: string | null;
  /** The master key that the user entered in this tab. */
  readonly masterKey: MasterKeyMemory;
  /** Signs in all tabs, and if the user stays signed in also after the browser was closed. */
  readonly signIn: (
    begun: BrowserSession,
    options: { readonly key: string; readonly stays: boolean },
  ) => void;
  /** Ends the session in this tab, and without a notice, which means that the user signs out, in all of them. */
  readonly signOut: (notice?: string) => void;
}

const [SessionContext, useCurrentSession] = createSafeContext<CurrentSession>(
  "there is no <SessionProvider>",
);

/** The session and its changes. */
export const useSession = useCurrentSession;

/** Keeps the session, and hands it to other tabs of the browser. */
export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const [state, setState] = useState<{ session: BrowserSession | null; notice: string | null }>(() => ({
    session: sessionOfTab() ?? readSession(localStorage),
    notice: null,
  }));
  const [masterKey] = useState(createMasterKeyMemory);
  const [isAsking, setAsking] = useState(state.session === null);
  const channel = useRef<BroadcastChannel>(null);
  const send = useCallback((message: z.infer<typeof Message>) => channel.current?.postMessage(message), []);

  const begin = useCallback((session: BrowserSession) => {
    sessionStorage.setItem(storageKey, JSON.stringify(session));
    sessionStorage.setItem(signOutStorageKey, lastSignOut());
    setState({ session, notice: null });
    setAsking(false);
  }, []);
  const end = useCallback(
    (notice: string | null) => {
      masterKey.forget();
      sessionStorage.removeItem(storageKey);
      sessionStorage.removeItem(signOutStorageKey);
      // Drafts outlast the end of a session, but not the user's own sign-out.
      if (notice === null) sessionStorage.clear();
      setState({ session: null, notice });
    },
    [masterKey],
  );
  const say = useCallback((notice: string) => {
    setState((before) => (before.session === null ? { ...before, notice } : before));
  }, []);

  const onMessage = useEffectEvent((data: unknown) => {
    const message = Message.safeParse(data).data;
    const { session } = state;
    if (message?.kind === "ask" && session !== null) send({ kind: "session", session });
    if (message?.kind === "session" && session === null) begin(message.session);
    if (message?.kind === "end" && message.id === session?.id) end(null);
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
  useEffect(() => {
    void repeatSignOuts().then((notice) => {
      if (notice !== null) say(notice);
    });
  }, [say]);

  const { session } = state;
  const current = useMemo<CurrentSession>(
    () => ({
      ...state,
      masterKey,
      signIn(begun, { key, stays }) {
        if (stays) localStorage.setItem(storageKey, JSON.stringify(begun));
        masterKey.set(key);
        begin(begun);
        send({ kind: "session", session: begun });
      },
      signOut(notice) {
        if (session !== null && readSession(localStorage)?.id === session.id)
          localStorage.removeItem(storageKey);
        end(notice ?? null);
        if (notice !== undefined || session === null) return;
        localStorage.setItem(signOutStorageKey, String(Date.now()));
        send({ kind: "end", id: session.id });
        void signOutOfServer(session).then((ending) => {
          if (ending !== "done") say(unreachedNotice);
        });
      },
    }),
    [state, masterKey, session, begin, end, say, send],
  );
  return <SessionContext value={current}>{!isAsking && children}</SessionContext>;
}

const unreachedNotice =
  "You are signed out here, but the sign-out did not reach the server: the session is still valid there. The sign-out is repeated when this page is opened again.";

/** The session of this tab; null if there is none, or the user has signed out since. */
function sessionOfTab(): BrowserSession | null {
  const session = readSession(sessionStorage);
  if (session === null || sessionStorage.getItem(signOutStorageKey) === lastSignOut()) return session;
  sessionStorage.clear();
  return null;
}

function lastSignOut(): string {
  return localStorage.getItem(signOutStorageKey) ?? "";
}

function readSession(storage: Storage): BrowserSession | null {
  const text = storage.getItem(storageKey);
  return text === null ? null : (BrowserSession.safeParse(JSON.parse(text)).data ?? null);
}
