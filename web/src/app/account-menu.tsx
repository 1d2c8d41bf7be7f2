import { Menu, useMantineColorScheme } from "@mantine/core";
import { Check, LogOut } from "lucide-react";
import type { ReactElement } from "react";
import { chooseLocale, locales, useChosenLocale } from "../components/locale.ts";
import { useSession } from "./session.tsx";

/** Light, dark, or the choice of the system; the browser keeps it. */
export const schemes = [
  { value: "auto", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
] as const;

/** Properties of {@link AccountMenu}. */
interface AccountMenuProps {
  /** The button that opens it. */
  readonly children: ReactElement;
}

/** The choices of this browser and the sign-out; open when it is first shown. */
export function AccountMenu({ children }: AccountMenuProps) {
  const { signOut } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const chosen = useChosenLocale();
  return (
    <Menu defaultOpened position="top-start" width={216} returnFocus>
      <Menu.Target>{children}</Menu.Target>
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
                {localeName(locale)}
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

/** A locale with an example of its numbers. */
export function localeName(locale: string): string {
  const example = new Intl.NumberFormat(locale || navigator.language).format(1234.5);
  return locale === "" ? `As the browser, ${example}` : `${locale}, ${example}`;
}
