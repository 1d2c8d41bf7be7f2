import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Failure } from "./failure.tsx";
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
  /** Text in place of an empty list; null if it has rows. */
  readonly empty: string | null;
}

/** A tab with one list: heading and actions, filters, errors, and the list itself or the reason for its absence. */
export function ListTab(props: ListTabProps) {
  const { filters, error, failure, onRetry, isPending, empty, children, ...page } = props;
  return (
    <Page {...page}>
      {filters}
      <Failure error={error} title={failure} onRetry={onRetry} />
      {isPending ? (
        <Waiting />
      ) : empty === null ? (
        children
      ) : (
        error == null && (
          <Text c="dimmed" py="xl" ta="center">
            {empty}
          </Text>
        )
      )}
    </Page>
  );
}
