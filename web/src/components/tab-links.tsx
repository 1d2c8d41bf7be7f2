import type { ReactNode } from "react";
import { Link } from "wouter";
import styles from "./tab-links.module.css";

/** A part of a view with its address. */
interface TabLink {
  readonly href: string;
  readonly label: string;
  /** After the label: a count, or a mark. */
  readonly extra?: ReactNode;
}

/** Properties of {@link TabLinks}. */
interface TabLinksProps {
  /** Accessible name of the navigation. */
  readonly label: string;
  readonly links: readonly TabLink[];
  /** Address of the shown part. */
  readonly current: string;
  /** After the links. */
  readonly children?: ReactNode;
}

/** The parts of a view as links, the shown one underlined. */
export function TabLinks({ label, links, current, children }: TabLinksProps) {
  return (
    <nav aria-label={label} className={styles.tabs}>
      {links.map(({ href, label: text, extra }) => (
        <Link
          key={href}
          href={href}
          className={styles.tab}
          aria-current={href === current ? "page" : undefined}
        >
          {text}
          {extra !== undefined && <span className={styles.extra}>{extra}</span>}
        </Link>
      ))}
      {children}
    </nav>
  );
}
