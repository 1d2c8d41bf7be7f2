import {
  AppShell,
  Burger,
  Group,
  ScrollArea,
  Text,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { LogOut, Moon, Sun, Waypoints } from "lucide-react";
import { Suspense, useEffect } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { IconButton } from "../components/icon-button.tsx";
import { ViewLink } from "../components/view-link.tsx";
import { Waiting } from "../components/waiting.tsx";
import { ConnectionState } from "./connection-state.tsx";
import { NotFound } from "./not-found.tsx";
import { useSession } from "./session.tsx";
import { innerViews, tabs } from "./tabs.ts";
import { ViewBoundary } from "./view-boundary.tsx";

/** The frame around all views: navigation, state of the live updates, theme and sign-out. */
export function Shell() {
  const [opened, { toggle, close }] = useDisclosure(false);
  const [location] = useLocation();
  const { signOut } = useSession();
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
          </ScrollArea>
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1}>
          <ViewBoundary location={location}>
            <Suspense fallback={<Waiting />}>
              <Switch>
                <Route path="/">
                  <Redirect to="/devices" replace />
                </Route>
                {[...tabs, ...innerViews].map(({ pattern, View }) => (
                  <Route key={pattern} path={pattern}>
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
    </>
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
