import { Paper, VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import styles from "./stat-strip.module.css";

/** Properties of {@link Stat}. */
interface StatProps {
  readonly term: string;
  /** Null where it is not known. */
  readonly value: ReactNode;
  /** Beside the value: its unit, or what it is a part of. */
  readonly unit?: ReactNode;
  /** At the end of the first line: its age, its span, or what it is made of. */
  readonly aside?: ReactNode;
  /** Where it leads: the whole field is then a link. */
  readonly href?: string;
  /** The whole field is a button that chooses it. */
  readonly choice?: { readonly isChosen: boolean; readonly label: string; readonly onChoose: () => void };
  /** The value is a state. */
  readonly state?: "bad" | "warn" | "old" | undefined;
  /** Below the value: its course, to the edges. */
  readonly children?: ReactNode;
}

/** Figures side by side in one card, divided by hairlines. */
export function StatStrip({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <Paper withBorder component="dl" className={styles.strip} aria-label={label}>
      {children}
    </Paper>
  );
}

/** A figure of a {@link StatStrip}. */
export function Stat({ term, value, unit, aside, href, choice, state, children }: StatProps) {
  return (
    <div
      className={styles.stat}
      data-link={href !== undefined || choice !== undefined || undefined}
      data-chosen={choice?.isChosen || undefined}
    >
      <dt className={styles.term}>
        {choice !== undefined ? (
          <button
            type="button"
            className={styles.link}
            title={term}
            aria-label={choice.label}
            aria-pressed={choice.isChosen}
            onClick={choice.onChoose}
          >
            {term}
          </button>
        ) : href === undefined ? (
          <span className={styles.name} title={term}>
            {term}
          </span>
        ) : href.startsWith("#") ? (
          <a href={href} className={styles.link} title={term}>
            {term}
          </a>
        ) : (
          <Link href={href} className={styles.link} title={term}>
            {term}
          </Link>
        )}
        {aside !== undefined && (
          <span className={styles.aside} {...(typeof aside === "string" && { title: aside })}>
            {aside}
          </span>
        )}
      </dt>
      {value === null ? (
        <dd className={styles.value} data-state="none">
          <span aria-hidden="true">–</span>
          <VisuallyHidden>not known</VisuallyHidden>
        </dd>
      ) : (
        <dd className={styles.value} data-state={state}>
          {value}
          {unit !== undefined && <span className={styles.unit}> {unit}</span>}
        </dd>
      )}
      {children !== undefined && <dd className={styles.course}>{children}</dd>}
    </div>
  );
}
