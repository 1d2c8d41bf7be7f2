import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { createApiClient } from "../api/api-client.ts";
import { ApiContext } from "../api/api-context.tsx";
import { ApiProblem, mayPass } from "../api/api-problem.ts";
import { repeatInterval } from "../api/use-reading.ts";
import { LiveUpdates } from "../live/live-updates.tsx";
import { updateCache } from "./apply-frames.ts";
import { type BrowserSession, SessionProvider, useSession } from "./session.tsx";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";
import { theme, tokenColors } from "./theme.ts";
import { useMasterKeyPrompt } from "./use-master-key-prompt.tsx";

/** The whole dashboard. */
export function App() {
  return (
    <MantineProvider theme={theme} cssVariablesResolver={tokenColors} defaultColorScheme="auto">
      <SessionProvider>
        <Entrance />
      </SessionProvider>
    </MantineProvider>
  );
}

function Entrance() {
  const { session } = useSession();
  // Each session has its own cache.
  return (
    <SessionCache key={session?.key}>
      {session === null ? <SignIn /> : <SignedIn session={session} />}
    </SessionCache>
  );
}

function SessionCache({ children }: { readonly children: ReactNode }) {
  const [queries] = useState(createQueryClient);
  useEffect(() => () => queries.clear(), [queries]);
  return <QueryClientProvider client={queries}>{children}</QueryClientProvider>;
}

function SignedIn({ session }: { readonly session: BrowserSession }) {
  const { signOut, masterKey } = useSession();
  const { askMasterKey, prompt } = useMasterKeyPrompt(masterKey);
  const api = useMemo(
    () =>
      createApiClient({
        key: session.key,
        session,
        askMasterKey,
        onRefusedKey: (key) =>
          key === session.key
            ? signOut("The session was ended or has expired. Sign in again.")
            : masterKey.forget(),
      }),
    [session, masterKey, askMasterKey, signOut],
  );
  return (
    <ApiContext value={api}>
      <LiveUpdates apply={updateCache}>
        <Shell />
      </LiveUpdates>
      {prompt}
    </ApiContext>
  );
}

/** The stream keeps data up to date, so nothing becomes stale by age. Client errors are not retried, except 429. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      // The gateway may be on this machine or network, so the browser's state of the internet does not matter.
      mutations: { networkMode: "always" },
      queries: {
        networkMode: "always",
        staleTime: Number.POSITIVE_INFINITY,
        refetchOnWindowFocus: false,
        refetchInterval: ({ state }) => repeatInterval(state),
        retry: (failures, error) => failures < 3 && mayPass(error),
        retryDelay: (failures, error) =>
          (error instanceof ApiProblem ? error.retryAfterMs : null) ??
          Math.min(1_000 * 2 ** failures, 30_000),
      },
    },
  });
}
