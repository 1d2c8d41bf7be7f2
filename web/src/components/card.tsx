import { Paper } from "@mantine/core";
import { ChevronRight } from "lucide-react";
import { type ReactNode, useId } from "react";
import { Link } from "wouter";
import styles from "./card.module.css";

/** Properties of {@link Card}. */
interface CardProps {
  readonly title?: string;
  /** Beside the title: a count, a state. */
  readonly mark?: ReactNode;
  /** Where it leads: the whole card is then a link. */
  readonly href?: string;
  /** Words at the end of the header of a card with `href`, as in "All devices". */
  readonly leads?: string;
  /** Controls at the end of the header. */
  readonly actions?: ReactNode;
  /** The content reaches the edges: a table, rows, a chart. */
  readonly flush?: boolean;
  /** Id of the card, for a link to it. */
  readonly id?: string;
  readonly children: ReactNode;
}

/** A link at the end of the header of a card that is no link as a whole, since it has controls. */
export function MoreLink({ href, children }: { readonly href: string; readonly children: ReactNode }) {
  return (
    <Link href={href} className={styles.leads}>
      {children} <ChevronRight size={16} aria-hidden="true" />
    </Link>
  );
}

/** What belongs together, below a title; cards are not nested. */
export function Card({ title, mark, href, leads, actions, flush = false, id, children }: CardProps) {
  const titleId = useId();
  return (
    <Paper
      withBorder
      component="section"
      className={styles.card}
      {...(title !== undefined && { "aria-labelledby": titleId })}
      {...(id !== undefined && { id })}
      data-link={href !== undefined || undefined}
    >
      {title !== undefined && (
        <div className={styles.header}>
          <h2 id={titleId} className={styles.title}>
            {href === undefined ? (
              title
            ) : (
              <Link href={href} className={styles.link}>
                {title}
              </Link>
            )}
          </h2>
          {mark}
          <div className={styles.actions}>
            {actions}
            {leads !== undefined && (
              <span className={styles.leads} aria-hidden="true">
                {leads} <ChevronRight size={16} />
              </span>
            )}
          </div>
        </div>
      )}
      <div className={styles.body} data-flush={flush || undefined}>
        {children}
      </div>
    </Paper>
  );
}
