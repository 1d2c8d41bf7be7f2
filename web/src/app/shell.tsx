import {
  Alert,
  Anchor,
  AppShell,
  Burger,
  Group,
  NavLink,
  ScrollArea,
  Text,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { CodeXml, LogOut, Moon, Sun, Waypoints } from "lucide-react";
import { Suspense, useEffect } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { IconButton } from "../components/icon-button.tsx";
import { lazyView } from "../components/lazy-view.ts";
import { Page } from "../components/page.tsx";
import { ViewLink } from "../components/view-link.tsx";
import { Waiting } from "../components/waiting.tsx";
import { useDeviceWork } from "../features/devices/bulk/device-work.ts";
import type { StreamState } from "../live/lasting-stream.ts";
import { useOutage, useStreamState } from "../live/live-updates.tsx";
import { useSession } from "./session.tsx";
import { innerViews, tabs } from "./tabs.ts";
import { ViewBoundary } from "./view-boundary.tsx";

const WorkPanel = lazyView(async () => (await import("../features/devices/bulk/work-panel.tsx")).WorkPanel);

/** The frame around all views: navigation, state of the live updates, theme and sign-out. */
export function Shell() {
  const [opened, { toggle, close }] = useDisclosure(false);
  const [location] = useLocation();
  const { signOut } = useSession();
  const outage = useOutage();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu of a phone closes at each navigation
  useEffect(close, [location]);

  return (
    <>
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      <AppShell
        header={{ height: 52 }}
        navbar={{ width: 190, breakpoint: "sm", collapsed: { mobile: !opened } }}
        padding="md"
        data-outage={outage !== null || undefined}
      >
        <AppShell.Header>
          <Group h="100%" px="md" justify="space-between" wrap="nowrap">
            <Group gap="sm" wrap="nowrap">
              <Burger
                opened={opened}
                onClick={toggle}
                hiddenFrom="sm"
                size="sm"
                aria-label={opened ? "Close the navigation" : "Open the navigation"}
                aria-expanded={opened}
              />
              <Text
                fw={600}
                c="var(--mantine-color-anchor)"
                component="span"
                style={{ whiteSpace: "nowrap" }}
              >
                <Waypoints size={20} /> Devmesh
              </Text>
            </Group>
            <Group gap="xs" wrap="nowrap">
              <ConnectionState />
              <ThemeSwitch />
              <IconButton label="Sign out" size="lg" onClick={() => signOut()}>
                <LogOut size={18} />
              </IconButton>
            </Group>
          </Group>
        </AppShell.Header>
        <AppShell.Navbar p="xs" aria-label="Views" component="nav">
          <ScrollArea>
            {tabs.map(({ path, label, Icon }) => (
              <ViewLink
                key={path}
                href={path}
                label={label}
                leftSection={<Icon size={18} />}
                active={location === path || location.startsWith(`${path}/`)}
              />
            ))}
            <NavLink
              component="a"
              href="/docs"
              target="_blank"
              label="API"
              leftSection={<CodeXml size={18} />}
            />
          </ScrollArea>
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1}>
          <OutageBanner since={outage} />
          <ViewBoundary location={location}>
            <Suspense fallback={<Waiting />}>
              <Switch>
                <Route path="/">
                  <Redirect to="/home" replace />
                </Route>
                {[...tabs, ...innerViews].map(({ path, View }) => (
                  <Route key={path} path={path}>
                    <View />
                  </Route>
                ))}
                <Route>
                  <NotFound />
                </Route>
              </Switch>
            </Suspense>
          </ViewBoundary>
        </AppShell.Main>
      </AppShell>
      <WorkInProgress />
    </>
  );
}

/** Work on many devices goes on while other views are shown. */
function WorkInProgress() {
  const [works] = useDeviceWork();
  return (
    works.length > 0 && (
      <Suspense>
        <WorkPanel />
      </Suspense>
    )
  );
}

/** Light or dark: the system's choice, until the user chooses; the browser keeps that. */
function ThemeSwitch() {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light", { getInitialValueInEffect: false });
  const other = scheme === "dark" ? "light" : "dark";
  return (
    <IconButton label={`Use the ${other} theme`} size="lg" onClick={() => setColorScheme(other)}>
      {scheme === "dark" ? <Sun size={18} /> : <Moon size={18} />}
    </IconButton>
  );
}

const streamStates: Readonly<Record<StreamState, { readonly text: string; readonly color: string }>> = {
  connecting: { text: "Connecting", color: "var(--mantine-color-gray-5)" },
  live: { text: "Live", color: "var(--mantine-color-teal-6)" },
  reconnecting: { text: "Reconnecting", color: "var(--mantine-color-yellow-6)" },
  unavailable: { text: "Live updates are not available", color: "var(--mantine-color-orange-6)" },
};

/** State of the live updates; screen readers announce its changes. */
function ConnectionState() {
  const { text, color } = streamStates[useStreamState()];
  return (
    <Group gap={6} wrap="nowrap" role="status" aria-live="polite">
      <span
        aria-hidden="true"
        style={{ width: 8, height: 8, borderRadius: 4, background: color, flex: "none" }}
      />
      <Text size="sm" c="dimmed" component="span" lineClamp={1}>
        {text}
      </Text>
    </Group>
  );
}

/** Says that the shown data may be outdated; screen readers announce it. */
function OutageBanner({ since }: { readonly since: number | null }) {
  const isReachable = useStreamState() === "unavailable";
  return (
    <div role="status">
      {since !== null && (
        <Alert
          color="yellow"
          mb="md"
          title={isReachable ? "The server sends no live updates" : "The server cannot be reached"}
        >
          What you see is as of {new Date(since).toLocaleTimeString()} and may have changed since. The
          connection is retried until it succeeds.
        </Alert>
      )}
    </div>
  );
}

/** The page for an unknown path. */
function NotFound() {
  return (
    <Page title="Page not found">
      <Text>
        Go on to the{" "}
        <Anchor component={Link} href="/devices" underline="always">
          devices
        </Anchor>
        .
      </Text>
    </Page>
  );
}
