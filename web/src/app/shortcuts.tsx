import { Kbd } from "@mantine/core";
import { Dialog } from "../components/dialog.tsx";
import styles from "./palette.module.css";
import { tabs } from "./tabs.ts";

const shortcuts: readonly (readonly [keys: readonly string[], meaning: string])[] = [
  [["⌘", "K"], "Search devices, views and actions; Ctrl K elsewhere"],
  [["/"], "Filter the list"],
  [["J"], "Next row"],
  [["K"], "Previous row"],
  [["Space"], "Open the device of the row beside the list"],
  [["↵"], "Open the page of the device"],
  [["X"], "Select the row; with Shift all rows from the one before"],
  [["⌘", "S"], "Save the desired state; Ctrl S elsewhere"],
  [["Esc"], "Close"],
  ...tabs.map(({ label, key }) => [["G", key.toUpperCase()], `Go to ${label}`] as const),
];

/** All keys of the dashboard. */
export function Shortcuts({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl className={styles.keys}>
        {shortcuts.map(([keys, meaning]) => (
          <div key={meaning} style={{ display: "contents" }}>
            <dt>
              {keys.map((key) => (
                <Kbd key={key} size="xs">
                  {key}
                </Kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
