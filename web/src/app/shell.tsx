import { Compass, Unplug } from "lucide-react";
import { Suspense } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { useBackgroundWork } from "../components/background-work.ts";
import { EmptyState } from "../components/empty-state.tsx";
import { lazyView } from "../components/lazy-view.ts";
import { useChosenLocale } from "../components/locale.ts";
import { Page } from "../components/page.tsx";
import { clockText } from "../components/time-in-words.ts";
import { Toasts } from "../components/toast.tsx";
import { Waiting } from "../components/waiting.tsx";
import { useOutage, useStreamState } from "../live/live-updates.tsx";
import { Navigation } from "./navigation.tsx";
import styles from "./shell.module.css";
import { innerViews, tabs } from "./tabs.ts";
import { useShortcuts } from "./use-shortcuts.tsx";
import { ViewBoundary } from "./view-boundary.tsx";

const WorkPanel = lazyView(async () => (await import("../components/work-panel.tsx")).WorkPanel);

/** The frame around all views: navigation, outage, toasts, and work in progress. */
export function Shell() {
  const [location] = useLocation();
  const outage = useOutage();
  const locale = useChosenLocale();
  const { search, dialog } = useShortcuts();

  return (
    <>
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      {/* Texts of another locale are made by a new start of all views. */}
      <div key={locale} className={styles.shell} data-outage={outage !== null || undefined}>
        <Navigation onSearch={search} />
        <main id="content" tabIndex={-1} className={styles.main}>
          <OutageBar since={outage} />
          <ViewBoundary location={location}>
            <Suspense
              fallback={
                <div style={{ padding: 24 }}>
                  <Waiting />
                </div>
              }
            >
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
        </main>
      </div>
      <WorkInProgress />
      <Toasts />
      {dialog}
    </>
  );
}

/** Work goes on while other views are shown. */
function WorkInProgress() {
  const [works] = useBackgroundWork();
  return <Suspense>{works.length > 0 && <WorkPanel />}</Suspense>;
}

/** Says that the shown data may be outdated; screen readers announce it. */
function OutageBar({ since }: { readonly since: number | null }) {
  const isReachable = useStreamState() === "unavailable";
  return (
    <div role="status">
      {since !== null && (
        <div className={styles.outage}>
          <Unplug size={16} aria-hidden="true" />
          <strong>{isReachable ? "The server sends no live updates" : "The server cannot be reached"}</strong>
          <span>What you see is as of {clockText(since)}. The connection is retried until it succeeds.</span>
        </div>
      )}
    </div>
  );
}

/** The page for an unknown path. */
function NotFound() {
  const [, navigate] = useLocation();
  return (
    <Page title="Page not found">
      <EmptyState
        Icon={Compass}
        title="Nothing is at this address"
        next="Home"
        onNext={() => navigate("/home")}
      />
    </Page>
  );
}
