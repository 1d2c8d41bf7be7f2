import { Kbd, Tooltip, VisuallyHidden } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { CodeXml, type LucideIcon, Menu as MenuIcon, Search } from "lucide-react";
import { Fragment, type ReactNode, Suspense, useEffect } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { lazyView } from "../components/lazy-view.ts";
import { countText } from "../components/number-text.ts";
import { phoneQuery } from "../components/phone.ts";
import { useAlertSummary } from "../features/alerts/use-alerts.ts";
import { addressOf, isView, useSavedViews, useViewQuery } from "../features/devices/shared/saved-views.ts";
import { Account } from "./account.tsx";
import { ConnectionState } from "./connection-state.tsx";
import styles from "./shell.module.css";
import { type Tab, tabGroups, tabs } from "./tabs.ts";

const PhoneMenu = lazyView(async () => (await import("./phone-menu.tsx")).PhoneMenu);

/** Windows with room for icons alone. */
const narrowQuery = "(max-width: 68.75em)";

const isApple = /Mac|iP/.test(navigator.userAgent);

interface NavigationProps {
  /** Opens the search. */
  readonly onSearch: () => void;
}

/** The ways to all views: at the side, or on a phone at the bottom. */
export function Navigation({ onSearch }: NavigationProps) {
  const isPhone = useMediaQuery(phoneQuery, false, { getInitialValueInEffect: false });
  return isPhone ? <PhoneBar onSearch={onSearch} /> : <SideNavigation onSearch={onSearch} />;
}

function SideNavigation({ onSearch }: NavigationProps) {
  return (
    <div className={styles.nav}>
      <Link href="/home" className={styles.brand} aria-label="Devmesh, to the home page">
        <img src="/icon.svg" alt="" />
        <span>Devmesh</span>
      </Link>
      <button type="button" className={styles.search} onClick={onSearch}>
        <Search size={16} aria-hidden="true" />
        <span className={styles.label}>Search</span>
        <Kbd size="xs" className={styles.more ?? ""} aria-hidden="true">
          {isApple ? "⌘K" : "Ctrl K"}
        </Kbd>
      </button>
      <nav className={styles.groups} aria-label="Views">
        <Groups />
      </nav>
      <div className={styles.foot}>
        <ConnectionState />
        <Account />
      </div>
    </div>
  );
}

/** All tabs in their groups, the saved views of devices, and the reference of the API. */
function Groups() {
  const isNarrow = useMediaQuery(`${narrowQuery} and (min-width: 48.01em)`, false, {
    getInitialValueInEffect: false,
  });
  const [location] = useLocation();
  const views = useSavedViews();
  const query = useViewQuery();
  const shownView = location === "/devices" ? views.find((view) => isView(view, query)) : undefined;
  return tabGroups.map((group) => {
    const members = tabs.filter((tab) => tab.group === group);
    if (members.length === 0) return null;
    return (
      <div key={group}>
        {group !== "" && <h2 className={styles.heading}>{group}</h2>}
        {members.map((tab) => (
          <Fragment key={tab.path}>
            <Item hint={isNarrow ? tab.label : null}>
              <Link
                href={tab.path}
                className={styles.item}
                aria-current={currentIf(isShown(tab, location) && shownView === undefined)}
              >
                <ItemContent Icon={tab.Icon} label={tab.label} />
                {tab.path === "/alerts" && <FiringBadge />}
              </Link>
            </Item>
            {tab.path === "/devices" && !isNarrow && views.length > 0 && (
              <ul className={styles.views} aria-label="Saved views">
                {views.map((view) => (
                  <li key={view.id}>
                    <Link
                      href={addressOf(view)}
                      className={styles.item}
                      title={view.name}
                      aria-current={currentIf(view === shownView)}
                    >
                      <span className={styles.label}>{view.name}</span>
                    </Link>
                  </li>
                ))}
              </ul>
            )}
          </Fragment>
        ))}
        {group === "Administration" && (
          <Item hint={isNarrow ? "API" : null}>
            <a href="/docs" target="_blank" rel="noreferrer" className={styles.item}>
              <ItemContent Icon={CodeXml} label="API" />
            </a>
          </Item>
        )}
      </div>
    );
  });
}

interface ItemProps {
  /** Shown at the side of an icon without a label; null with one. */
  readonly hint: string | null;
  readonly children: ReactNode;
}

function Item({ hint, children }: ItemProps) {
  return (
    <Tooltip label={hint} disabled={hint === null} position="right" openDelay={0}>
      {children}
    </Tooltip>
  );
}

function ItemContent({ Icon, label }: { readonly Icon: LucideIcon; readonly label: string }) {
  return (
    <>
      <Icon size={16} aria-hidden="true" />
      <span className={styles.label}>{label}</span>
    </>
  );
}

/** A badge has no room for more. */
const mostShown = 999;

/** How many alerts fire that nobody has acknowledged; nothing for none, and a question mark if that is not known. */
function FiringBadge() {
  const { data, error } = useAlertSummary();
  if (error !== null)
    return (
      <span className={styles.badge}>
        ?<VisuallyHidden> what fires is not known</VisuallyHidden>
      </span>
    );
  const count = data?.unacknowledged ?? 0;
  if (count === 0) return null;
  return (
    <span className={styles.badge}>
      {count > mostShown ? `${countText(mostShown)}+` : countText(count)}
      <VisuallyHidden> firing</VisuallyHidden>
    </span>
  );
}

function PhoneBar({ onSearch }: NavigationProps) {
  const [opened, menu] = useDisclosure(false);
  const [location] = useLocation();
  const search = useSearch();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes at each navigation
  useEffect(menu.close, [location, search]);
  const shown = tabs.filter(({ isInBar }) => isInBar);
  return (
    <>
      <nav className={styles.bar} aria-label={opened ? "Main views" : "Views"}>
        {shown.map((tab) => (
          <Link
            key={tab.path}
            href={tab.path}
            className={styles.barItem}
            aria-current={currentIf(isShown(tab, location))}
          >
            <tab.Icon size={22} aria-hidden="true" />
            {tab.label}
            {tab.path === "/alerts" && <FiringBadge />}
          </Link>
        ))}
        <button type="button" className={styles.barItem} onClick={onSearch}>
          <Search size={22} aria-hidden="true" />
          Search
        </button>
        <button
          type="button"
          className={styles.barItem}
          aria-label="More: open the navigation"
          aria-expanded={opened}
          onClick={menu.open}
        >
          <MenuIcon size={22} aria-hidden="true" />
          More
        </button>
      </nav>
      <Suspense>
        {opened && (
          <PhoneMenu onClose={menu.close}>
            <Groups />
          </PhoneMenu>
        )}
      </Suspense>
    </>
  );
}

/** Whether the shown view is a tab, or below it. */
function isShown({ path }: Tab, location: string): boolean {
  return location === path || location.startsWith(`${path}/`);
}

function currentIf(isCurrent: boolean): "page" | undefined {
  return isCurrent ? "page" : undefined;
}
