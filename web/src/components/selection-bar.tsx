import { X } from "lucide-react";
import type { ReactNode } from "react";
import { IconButton } from "./icon-button.tsx";
import styles from "./selection-bar.module.css";

/** Properties of {@link SelectionBar}. */
interface SelectionBarProps {
  /** How many are selected, in words. */
  readonly count: string;
  readonly onClear: () => void;
  /** The actions. */
  readonly children: ReactNode;
}

/** What can be done with the selected rows, above the end of the list. */
export function SelectionBar({ count, onClear, children }: SelectionBarProps) {
  return (
    <section className={styles.bar} aria-label="Selected rows">
      <span role="status" className={styles.count}>
        {count}
      </span>
      <div className={styles.actions}>{children}</div>
      <IconButton label="Clear the selection" onClick={onClear} className={styles.close}>
        <X size={16} />
      </IconButton>
    </section>
  );
}
