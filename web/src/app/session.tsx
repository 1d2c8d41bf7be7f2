import { createSafeContext } from "@mantine/core";
import { type ReactNode, useCallback, useMemo, useState } from "react";

/** Name of the key in the storage of the browser's tab; the key is never in a URL. */
const storageKey = "devmesh.master-key";

/** The session in this tab of the browser. */
interface Session {
  /** The master key; null without a session. */
  readonly key: string | null;
  /** Why the last session ended; null if the user signed out. */
  readonly notice: string | null;
  readonly signIn: (key: string) => void;
  readonly signOut: (notice?: string) => void;
}

const [SessionContext, useCurrentSession] = createSafeContext<Session>("there is no <SessionProvider>");

/** The session and its changes. */
export const useSession = useCurrentSession;

/** Keeps the key of the session. */
export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const [state, setState] = useState<{ key: string | null; notice: string | null }>(() => ({
    key: sessionStorage.getItem(storageKey),
    notice: null,
  }));
  const signIn = useCallback((key: string) => {
    sessionStorage.setItem(storageKey, key);
    setState({ key, notice: null });
  }, []);
  const signOut = useCallback((notice?: string) => {
    // Drafts outlast the end of a key, but not the user's own sign-out.
    if (notice === undefined) sessionStorage.clear();
    else sessionStorage.removeItem(storageKey);
    setState({ key: null, notice: notice ?? null });
  }, []);
  const session = useMemo(() => ({ ...state, signIn, signOut }), [state, signIn, signOut]);
  return <SessionContext value={session}>{children}</SessionContext>;
}
