import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";

/** Where the key is kept: gone with the browser's tab, never in a URL. */
const storageKey = "devmesh.master-key";

/** Who is signed in, in this tab of the browser. */
interface Session {
  /** The master key; null when nobody is signed in. */
  readonly key: string | null;
  /** Why the last session ended, for who signs in next; null when it was ended on purpose. */
  readonly notice: string | null;
  readonly signIn: (key: string) => void;
  readonly signOut: (notice?: string) => void;
}

const SessionContext = createContext<Session | null>(null);

/** Keeps the key that somebody signed in with. */
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
    sessionStorage.removeItem(storageKey);
    setState({ key: null, notice: notice ?? null });
  }, []);
  const session = useMemo(() => ({ ...state, signIn, signOut }), [state, signIn, signOut]);
  return <SessionContext value={session}>{children}</SessionContext>;
}

/** Who is signed in, and how that changes. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("there is no session outside of <SessionProvider>");
  return session;
}
