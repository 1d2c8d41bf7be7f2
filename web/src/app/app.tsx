import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { createApiClient } from "../api/api-client.ts";
import { ApiContext } from "../api/api-context.tsx";
import { ApiProblem } from "../api/api-problem.ts";
import { LiveUpdates } from "../live/live-updates.tsx";
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
  // A new key sees nothing of what another had read.
  return key === null ? <SignIn /> : <SignedIn key={key} apiKey={key} />;
}

function SignedIn({ apiKey }: { readonly apiKey: string }) {
  const { signOut } = useSession();
  const [queries] = useState(createQueryClient);
  const api = useMemo(
    () =>
      createApiClient({
        origin: "",
        key: apiKey,
        onRefusedKey: () =>
          signOut("The key is no longer accepted: it was deleted or has expired. Sign in again."),
      }),
    [apiKey, signOut],
  );
  useEffect(() => () => queries.clear(), [queries]);
  return (
    <QueryClientProvider client={queries}>
      <ApiContext value={api}>
        <LiveUpdates>
          <Shell />
        </LiveUpdates>
      </ApiContext>
    </QueryClientProvider>
  );
}

/** The stream keeps what was read up to date, so nothing grows stale by age. Of refusals only those are asked again that say when. */
function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      // The gateway may be on this machine or its network: what the browser thinks of the internet says nothing about it.
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
