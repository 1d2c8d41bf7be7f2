import { Drawer, NativeSelect, SegmentedControl, useMantineColorScheme } from "@mantine/core";
import { LogOut } from "lucide-react";
import type { ReactNode } from "react";
import { chooseLocale, locales, useChosenLocale } from "../components/locale.ts";
import { localeName, schemes } from "./account-menu.tsx";
import { ConnectionState } from "./connection-state.tsx";
import { useSession } from "./session.tsx";
import styles from "./shell.module.css";

/** Properties of {@link PhoneMenu}. */
interface PhoneMenuProps {
  readonly onClose: () => void;
  /** The links of the navigation. */
  readonly children: ReactNode;
}

/** All views and the choices of this browser in a sheet. */
export function PhoneMenu({ onClose, children }: PhoneMenuProps) {
  return (
    <Drawer
      opened
      onClose={onClose}
      position="bottom"
      size="auto"
      title="Devmesh"
      closeButtonProps={{ "aria-label": "Close the navigation" }}
      attributes={{ header: { role: "none" } }}
      styles={{ content: { height: "auto" } }}
    >
      <nav aria-label="Views">{children}</nav>
      <div className={styles.foot} style={{ paddingInline: 0 }}>
        <ConnectionState />
        <AccountItems />
      </div>
    </Drawer>
  );
}

/** The choices of the key's menu without a menu. */
function AccountItems() {
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
        data={locales.map((locale) => ({ value: locale, label: localeName(locale) }))}
        my={8}
      />
      <button type="button" className={styles.item} onClick={() => signOut()}>
        <LogOut size={16} aria-hidden="true" />
        <span className={styles.label}>Sign out</span>
      </button>
    </>
  );
}
