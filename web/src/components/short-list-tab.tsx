import { Button, Group, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Plus, Trash2 } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import type { Reading } from "../api/use-reading.ts";
import { Card } from "./card.tsx";
import { Confirmation } from "./confirmation.tsx";
import { type Column, DataTable } from "./data-table.tsx";
import { EmptyState } from "./empty-state.tsx";
import { FilterInput } from "./filter-input.tsx";
import { IconButton } from "./icon-button.tsx";
import { ListTab } from "./list-tab.tsx";
import { countText } from "./number-text.ts";
import { useAddress } from "./use-address.ts";

/** Number of rows below which a list has no filter. */
const fewRows = 10;

/** Rows that a table starts with and grows by: drawing thousands at once would block the page. */
const rowStep = 100;

const noFilter = { filter: "" };

/** The removal of a row, which the user confirms. */
interface RowRemoval<T> {
  /** Label of the button that confirms it. */
  readonly action: string;
  /** Names it with its row, as in "Remove ann@example.com". */
  readonly label: (row: T) => string;
  /** Why a row cannot be removed; undefined if it can. */
  readonly blockedBy?: (row: T) => string | undefined;
  readonly consequence: (row: T) => string;
  /** Removes a row; the list is read again after it. */
  readonly run: (row: T) => Promise<unknown>;
}

/** Properties of {@link ShortListTab}. */
interface ShortListTabProps<T> {
  readonly title: string;
  /** What a row is, as in "key". */
  readonly noun: string;
  readonly query: Reading<readonly T[]>;
  readonly filterPlaceholder: string;
  /** The texts of a row that the filter searches. A constant function. */
  readonly textsOf: (row: T) => readonly (string | null)[];
  /** Text in place of a list without rows. */
  readonly none: string;
  readonly columns: readonly Column<T>[];
  /** Width below which the table folds, in pixels. */
  readonly minWidth: number;
  readonly removal: RowRemoval<T>;
  /** Controls before the button for a new row. */
  readonly actions?: ReactNode;
  /** `TabLinks` of the view that the list is a part of. */
  readonly tabs?: ReactNode;
  /** In place of `title` in the heading, of a list that is a part of a view. */
  readonly heading?: string;
  /** After the list, also where it is empty. */
  readonly after?: ReactNode;
  /** Label of the button that opens the dialog for a new row. */
  readonly creation: string;
  readonly creationDialog: (onClose: () => void) => ReactNode;
}

/** A tab with a list that the server sends whole: filtered here, its table shown in steps. */
export function ShortListTab<T extends { readonly id: string }>(props: ShortListTabProps<T>) {
  const { title, noun, query, textsOf, none, columns, removal, creation, creationDialog } = props;
  const [{ filter }, change] = useAddress(noFilter);
  const [shown, setShown] = useState(rowStep);
  const [creating, create] = useDisclosure(false);
  const [removed, setRemoved] = useState<T | null>(null);
  const { data = [] } = query;
  const matching = useMemo(() => matchingRows(data, textsOf, filter.trim()), [data, textsOf, filter]);
  const count = countText(matching.length);
  const removalColumn: Column<T> = {
    heading: "Actions",
    hidesHeading: true,
    style: { ta: "end" },
    cell: (row) => {
      const blockedBy = removal.blockedBy?.(row);
      return (
        <IconButton
          label={removal.label(row)}
          tooltip={blockedBy ?? removal.action}
          // A disabled button would have neither the focus nor a tooltip.
          {...(blockedBy === undefined
            ? { onClick: () => setRemoved(row) }
            : { "aria-disabled": true, "data-disabled": true })}
        >
          <Trash2 size={16} />
        </IconButton>
      );
    },
  };
  return (
    <>
      <ListTab
        title={props.heading ?? title}
        {...(props.heading !== undefined && { part: title })}
        tabs={props.tabs}
        count={query.data === undefined || props.heading !== undefined ? undefined : countText(data.length)}
        actions={
          <>
            {props.actions}
            <Button leftSection={<Plus size={16} />} onClick={create.open}>
              {creation}
            </Button>
          </>
        }
        filters={
          (data.length > fewRows || filter !== "") && (
            <Group gap="sm" justify="space-between">
              <FilterInput
                aria-label={`Filter ${noun}s`}
                placeholder={props.filterPlaceholder}
                filter={filter}
                onFilter={(changed) => change({ filter: changed })}
              />
              <Text size="sm" c="dimmed" role="status">
                {matching.length === 1 ? `1 ${noun}` : `${count} ${noun}s`}
              </Text>
            </Group>
          )
        }
        error={query.error}
        failure={`The ${noun}s could not be read`}
        onRetry={() => void query.refetch()}
        isPending={query.isPending}
        after={props.after}
        empty={
          data.length === 0 ? (
            <EmptyState title={`No ${noun}s yet`}>{none}</EmptyState>
          ) : matching.length === 0 ? (
            <EmptyState
              title={`No ${noun} matches.`}
              next={`Show all ${noun}s`}
              onNext={() => change(noFilter)}
            />
          ) : null
        }
      >
        <Card flush>
          <DataTable
            label={title}
            minWidth={props.minWidth}
            columns={[...columns, removalColumn]}
            rows={matching.slice(0, shown)}
            keyOf={({ id }) => id}
          />
        </Card>
        {shown < matching.length && (
          <Group gap="sm">
            <Text size="sm" c="dimmed" role="status">
              The first {countText(shown)} of {count} {noun}s
            </Text>
            <Button size="xs" variant="default" onClick={() => setShown(shown + rowStep)}>
              Show more
            </Button>
          </Group>
        )}
      </ListTab>
      {creating && creationDialog(create.close)}
      {removed !== null && (
        <Confirmation
          title={`${removal.label(removed)}?`}
          action={removal.action}
          run={async () => {
            await removal.run(removed);
            await query.refetch();
          }}
          onClose={() => setRemoved(null)}
        >
          {removal.consequence(removed)}
        </Confirmation>
      )}
    </>
  );
}

/** The rows of which a text has `part` in it; the case of letters means nothing. */
export function matchingRows<T>(
  rows: readonly T[],
  textsOf: (row: T) => readonly (string | null)[],
  part: string,
): readonly T[] {
  const wanted = part.toLowerCase();
  return rows.filter((row) => textsOf(row).some((text) => text?.toLowerCase().includes(wanted)));
}
