import type { ReactNode } from "react";
import { Card } from "./card.tsx";
import { Failure } from "./failure.tsx";
import styles from "./list-tab.module.css";
import { Page, type PageProps } from "./page.tsx";
import { Waiting } from "./waiting.tsx";

/** Properties of {@link ListTab}. */
interface ListTabProps extends PageProps {
  /** Filters, the count and what else belongs above the list. */
  readonly filters: ReactNode;
  readonly error: unknown;
  /** Heading of the error. */
  readonly failure: string;
  readonly onRetry: () => void;
  readonly isPending: boolean;
  /** An `EmptyState` in place of the list; null if it has rows. */
  readonly empty: ReactNode;
  /** After the list, also where it is empty. */
  readonly after?: ReactNode;
}

/** A tab with one list: heading and actions, filters, errors, and the list itself or the reason for its absence. */
export function ListTab(props: ListTabProps) {
  const { filters, error, failure, onRetry, isPending, empty, after, children, ...page } = props;
  return (
    <Page {...page}>
      {filters !== false && <div className={styles.filters}>{filters}</div>}
      {error != null && (
        <div className={styles.error}>
          <Failure error={error} title={failure} onRetry={onRetry} />
        </div>
      )}
      {isPending ? (
        <Pending fills={page.fills === true} />
      ) : empty === null ? (
        children
      ) : (
        error == null && empty
      )}
      {after}
    </Page>
  );
}

/** The shape of the list on the plane that it will have. */
function Pending({ fills }: { readonly fills: boolean }) {
  if (fills)
    return (
      <div className={styles.pending}>
        <Waiting rows={10} />
      </div>
    );
  return (
    <Card flush>
      <Waiting rows={10} />
    </Card>
  );
}
