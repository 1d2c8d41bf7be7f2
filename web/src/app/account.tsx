import { release } from "@devmesh/contracts/release";
import { Menu, NativeSelect, SegmentedControl, useMantineColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Check, ChevronsUpDown, KeyRound, LogOut } from "lucide-react";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { chooseLocale, locales, useChosenLocale } from "../components/locale.ts";
import { StateDot, type StateLook } from "../components/state.tsx";
import type { StreamState } from "../live/lasting-stream.ts";
import { useStreamState } from "../live/live-updates.tsx";
import { useSession } from "./session.tsx";
import styles from "./shell.module.css";

const streamStates: Readonly<Record<StreamState, { readonly text: string; readonly look: StateLook }>> = {
  connecting: { text: "Connecting", look: "idle" },
  live: { text: "Live", look: "good" },
  reconnecting: { text: "Reconnecting", look: "warn" },
  unavailable: { text: "No live updates", look: "warn" },
};

/** State of the live updates, which screen readers announce, and the release. */
export function ConnectionState() {
  const { text, look } = streamStates[useStreamState()];
  return (
    <div className={styles.state}>
      <StateDot look={look} />
      <span role="status" aria-live="polite" className={styles.label}>
        {text}
      </span>
      <span className={styles.version}>{release}</span>
    </div>
  );
}

/** Light, dark, or the choice of the system; the browser keeps it. */
const schemes = [
  { value: "auto", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
] as const;

/** The key of the session; its menu has the choices of this browser and the sign-out. */
export function Account() {
  const { signOut } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const chosen = useChosenLocale();
  const name = useKeyName();
  return (
    <Menu position="top-start" width={216} returnFocus>
      <Menu.Target>
        <button type="button" className={`${styles.item} ${styles.account}`} aria-label={`${name}: menu`}>
          <KeyRound size={16} aria-hidden="true" />
          <span className={styles.label}>{name}</span>
          <ChevronsUpDown size={14} className={styles.more} aria-hidden="true" />
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Theme</Menu.Label>
        {schemes.map(({ value, label }) => (
          <Menu.Item
            key={value}
            closeMenuOnClick={false}
            aria-current={value === colorScheme || undefined}
            rightSection={value === colorScheme && <Check size={14} aria-hidden="true" />}
            onClick={() => setColorScheme(value)}
          >
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Sub>
          <Menu.Sub.Target>
            <Menu.Sub.Item>Numbers and dates</Menu.Sub.Item>
          </Menu.Sub.Target>
          <Menu.Sub.Dropdown>
            {locales.map((locale) => (
              <Menu.Item
                key={locale}
                aria-current={locale === chosen || undefined}
                rightSection={locale === chosen && <Check size={14} aria-hidden="true" />}
                onClick={() => chooseLocale(locale)}
              >
                {nameOf(locale)}
              </Menu.Item>
            ))}
          </Menu.Sub.Dropdown>
        </Menu.Sub>
        <Menu.Divider />
        <Menu.Item leftSection={<LogOut size={16} />} onClick={() => signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** The same choices without a menu, for a sheet. */
export function AccountItems() {
  const { signOut } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const chosen = useChosenLocale();
  return (
    <>
      <SegmentedControl
        aria-label="Theme"
        fullWidth
        value={colorScheme}
        onChange={(value) => setColorScheme(value as typeof colorScheme)}
        data={[...schemes]}
      />
      <NativeSelect
        label="Numbers and dates"
        value={chosen}
        onChange={(event) => chooseLocale(event.currentTarget.value)}
        data={locales.map((locale) => ({ value: locale, label: nameOf(locale) }))}
        my={8}
      />
      <button type="button" className={styles.item} onClick={() => signOut()}>
        <LogOut size={16} aria-hidden="true" />
        <span className={styles.label}>Sign out</span>
      </button>
    </>
  );
}

/** A locale with an example of its numbers. */
function nameOf(locale: string): string {
  const example = new Intl.NumberFormat(locale || navigator.language).format(1234.5);
  return locale === "" ? `As the browser, ${example}` : `${locale}, ${example}`;
}

/** Name of the master key that began the session. */
function useKeyName(): string {
  const api = useApi();
  const { data } = useQuery({
    queryKey: queryKeys.keys,
    queryFn: ({ signal }) => api.call("listKeys", { signal }),
  });
  return data?.find(({ id }) => id === api.session?.master_key_id)?.name ?? "Master key";
}
