import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { createApiClient } from "../api/api-client.ts";
import { ApiContext } from "../api/api-context.tsx";
import { ApiProblem } from "../api/api-problem.ts";
import { LiveUpdates } from "../live/live-updates.tsx";
import { updateCache } from "./apply-frames.ts";
import { SessionProvider, useSession } from "./session.tsx";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";
import { accessibleColors, theme } from "./theme.ts";

/** The whole dashboard. */
export function App() {
  return (
    <MantineProvider theme={theme} cssVariablesResolver={accessibleColors} defaultColorScheme="auto">
      <SessionProvider>
        <Entrance />
      </SessionProvider>
    </MantineProvider>
  );
}

function Entrance() {
  const { key } = useSession();
  // Each session has its own cache.
  return <SessionCache key={key}>{key === null ? <SignIn /> : <SignedIn apiKey={key} />}</SessionCache>;
}

function SessionCache({ children }: { readonly children: ReactNode }) {
  const [queries] = useState(createQueryClient);
  useEffect(() => () => queries.clear(), [queries]);
  return <QueryClientProvider client={queries}>{children}</QueryClientProvider>;
}

function SignedIn({ apiKey }: { readonly apiKey: string }) {
  const { signOut } = useSession();
  const api = useMemo(
    () =>
      createApiClient({
        key: apiKey,
        onRefusedKey: () =>
          signOut("The key is no longer accepted: it was deleted or has expired. Sign in again."),
      }),
    [apiKey, signOut],
  );
  return (
    <ApiContext value={api}>
      <LiveUpdates apply={updateCache}>
        <Shell />
      </LiveUpdates>
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
        retry: (failures, error) => failures < 3 && mayPass(error),
        retryDelay: (failures, error) =>
          (error instanceof ApiProblem ? error.retryAfterMs : null) ??
          Math.min(1_000 * 2 ** failures, 30_000),
      },
    },
  });
}

function mayPass(error: Error): boolean {
  return !(error instanceof ApiProblem) || error.status >= 500 || error.status === 429;
}
