import { Button, Group, ScrollArea, Table, Text } from "@mantine/core";
import { Plus } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import { FilterInput } from "./filter-input.tsx";
import { ListTab } from "./list-tab.tsx";
import { TableHead } from "./table-head.tsx";
import { useAddress } from "./use-address.ts";

/** Number of rows below which a list has no filter. */
const fewRows = 10;

/** Rows that a table starts with and grows by: drawing thousands at once would block the page. */
const rowStep = 100;

const noFilter = { filter: "" };

/** Properties of {@link ShortListTab}. */
interface ShortListTabProps<T> {
  readonly title: string;
  /** What a row is, as in "key". */
  readonly noun: string;
  readonly query: {
    readonly data: readonly T[] | undefined;
    readonly error: unknown;
    readonly isPending: boolean;
    readonly refetch: () => unknown;
  };
  readonly filterPlaceholder: string;
  /** The rows that match a filter. A constant function. */
  readonly find: (rows: readonly T[], filter: string) => readonly T[];
  /** Text in place of a list without rows. */
  readonly none: string;
  /** The action beside the heading. */
  readonly action: string;
  readonly onAction: () => void;
  readonly headings: readonly string[];
  /** Width below which the table scrolls, in pixels. */
  readonly minWidth: number;
  readonly row: (item: T) => ReactNode;
  readonly dialogs: ReactNode;
}

/** A tab with a list that the server sends whole: filtered here, its table shown in steps. */
export function ShortListTab<T>(props: ShortListTabProps<T>) {
  const {
    title,
    noun,
    query,
    filterPlaceholder,
    find,
    none,
    action,
    onAction,
    headings,
    minWidth,
    row,
    dialogs,
  } = props;
  const [{ filter }, change] = useAddress(noFilter);
  const [shown, setShown] = useState(rowStep);
  const { data = [] } = query;
  const matching = useMemo(() => find(data, filter.trim()), [find, data, filter]);
  const count = matching.length.toLocaleString("en");
  return (
    <>
      <ListTab
        title={title}
        actions={
          <Button leftSection={<Plus size={16} />} onClick={onAction}>
            {action}
          </Button>
        }
        filters={
          (data.length > fewRows || filter !== "") && (
            <Group gap="sm" justify="space-between">
              <FilterInput
                label={`Filter ${noun}s`}
                placeholder={filterPlaceholder}
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
        empty={data.length === 0 ? none : matching.length === 0 ? `No ${noun} matches.` : null}
      >
        <ScrollArea>
          <Table miw={minWidth} aria-label={title} highlightOnHover>
            <TableHead headings={headings} />
            <Table.Tbody>{matching.slice(0, shown).map(row)}</Table.Tbody>
          </Table>
        </ScrollArea>
        {shown < matching.length && (
          <Group gap="sm">
            <Text size="sm" c="dimmed" role="status">
              The first {shown.toLocaleString("en")} of {count} {noun}s
            </Text>
            <Button size="xs" variant="default" onClick={() => setShown(shown + rowStep)}>
              Show more
            </Button>
          </Group>
        )}
      </ListTab>
      {dialogs}
    </>
  );
}
