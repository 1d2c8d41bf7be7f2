import { Alert, Button, Group, Stack, type TableTdProps, Text } from "@mantine/core";
import { type Column, DataTable } from "../../../components/data-table.tsx";
import type { LeafChange } from "../shared/json-changes.ts";

const style: TableTdProps = { ff: "monospace", fz: "xs" };

const columns: readonly Column<LeafChange>[] = [
  {
    heading: "Where",
    cell: ({ pointer, clash }) => (
      <>
        {pointer === "" ? "/" : pointer}
        {clash && <strong> (both changed it)</strong>}
      </>
    ),
    style,
  },
  { heading: "Before", cell: ({ before }) => before ?? "none", style },
  { heading: "Theirs", cell: ({ theirs }) => theirs ?? "none", style },
  { heading: "Yours", cell: ({ mine }) => mine ?? "none", style },
];

/** Properties of {@link ChangeConflict}. */
interface ChangeConflictProps {
  /** What both changed, as in "the desired state". */
  readonly what: string;
  /** Null while the editor has no valid value. */
  readonly changes: readonly LeafChange[] | null;
  readonly saving: boolean;
  readonly onTakeTheirs: () => void;
  /** Null while the editor has no valid value. */
  readonly onOverwrite: (() => void) | null;
}

/** Shows the changes of another user beside those in the editor, and asks which to keep. */
export function ChangeConflict(props: ChangeConflictProps) {
  const { what, changes, saving, onTakeTheirs, onOverwrite } = props;
  return (
    <Alert
      color="yellow"
      variant="light"
      role="alert"
      title={`Someone else changed ${what} meanwhile`}
      // On a phone the table scrolls in it instead of widening it.
      styles={{ body: { minWidth: 0 }, label: { overflow: "visible", whiteSpace: "normal" } }}
    >
      <Stack gap="xs">
        {changes === null ? (
          <Text size="sm">What you have typed is not complete, so it cannot be shown beside theirs.</Text>
        ) : (
          <DataTable
            label="Theirs and yours"
            minWidth={520}
            columns={columns}
            rows={changes}
            keyOf={({ pointer }) => pointer}
          />
        )}
        <Group gap="xs">
          <Button size="xs" variant="default" onClick={onTakeTheirs}>
            Discard mine, take theirs
          </Button>
          <Button
            size="xs"
            data-danger
            loading={saving}
            disabled={onOverwrite === null}
            onClick={() => onOverwrite?.()}
          >
            Overwrite theirs with mine
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}
