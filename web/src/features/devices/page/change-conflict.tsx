import { Alert, Button, Group, ScrollArea, Stack, Table, Text } from "@mantine/core";
import type { LeafChange } from "./leaf-changes.ts";

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
      title={`Somebody else changed ${what} meanwhile`}
      // On a phone the table scrolls in it instead of widening it.
      styles={{ body: { minWidth: 0 }, label: { overflow: "visible", whiteSpace: "normal" } }}
    >
      <Stack gap="xs">
        {changes === null ? (
          <Text size="sm">What you have typed is not complete, so it cannot be shown beside theirs.</Text>
        ) : (
          <ScrollArea>
            <Table miw={520} aria-label="Theirs and yours">
              <Table.Thead>
                <Table.Tr>
                  {["Where", "Before", "Theirs", "Yours"].map((heading) => (
                    <Table.Th key={heading}>{heading}</Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody ff="monospace" fz="xs">
                {changes.map(({ pointer, before, theirs, mine, clash }) => (
                  <Table.Tr key={pointer}>
                    <Table.Td>
                      {pointer === "" ? "/" : pointer}
                      {clash && <strong> (both changed it)</strong>}
                    </Table.Td>
                    {[before, theirs, mine].map((value, at) => (
                      // biome-ignore lint/suspicious/noArrayIndexKey: three columns that never move
                      <Table.Td key={at}>{value ?? "none"}</Table.Td>
                    ))}
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollArea>
        )}
        <Group gap="xs">
          <Button size="xs" variant="default" onClick={onTakeTheirs}>
            Discard mine, take theirs
          </Button>
          <Button
            size="xs"
            color="red"
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
