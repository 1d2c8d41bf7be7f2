import type { ReactNode } from "react";
import styles from "./state.module.css";

/** What a colour means; the word and the shape beside it say the same. */
export type StateLook = "good" | "warn" | "bad" | "info" | "idle";

/** Properties of {@link StateBadge}. */
interface StateBadgeProps {
  readonly look: StateLook;
  readonly children: ReactNode;
}

/** A state in a word. */
export function StateBadge({ look, children }: StateBadgeProps) {
  return (
    <span className={styles.badge} data-look={look}>
      <StateDot look={look} />
      {children}
    </span>
  );
}

/** The dot of a state: filled, or a ring for none. A word has to be near it. */
export function StateDot({ look }: { readonly look: StateLook }) {
  return <span className={styles.dot} data-look={look} aria-hidden="true" />;
}

/** A short word without a state, such as a label or a kind. */
export function Tag({ children }: { readonly children: ReactNode }) {
  return <span className={styles.tag}>{children}</span>;
}
