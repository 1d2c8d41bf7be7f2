import { Button } from "@mantine/core";
import { Inbox, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import styles from "./empty-state.module.css";

/** Properties of {@link EmptyState}. */
interface EmptyStateProps {
  readonly Icon?: LucideIcon;
  /** What there is none of, as in "No devices yet". */
  readonly title: string;
  /** Why there is nothing, and where it would come from. */
  readonly children?: ReactNode;
  /** Label of the button with the next step. */
  readonly next?: string;
  readonly onNext?: () => void;
}

/** In place of what is empty: an icon, a line, a sentence, and what to do next. */
export function EmptyState({ Icon = Inbox, title, children, next, onNext }: EmptyStateProps) {
  return (
    <div className={styles.empty}>
      <Icon size={24} strokeWidth={1.5} aria-hidden="true" />
      <p className={styles.title}>{title}</p>
      {children !== undefined && <div className={styles.text}>{children}</div>}
      {next !== undefined && (
        <Button mt={8} onClick={onNext}>
          {next}
        </Button>
      )}
    </div>
  );
}
