import { Button, Group, Paper, Text } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { Icon } from "../elements/icon.tsx";

const CallDevices = lazy(() =>
  import("./call-devices.tsx").then((module) => ({ default: module.CallDevices })),
);
const LabelDevices = lazy(() =>
  import("./label-devices.tsx").then((module) => ({ default: module.LabelDevices })),
);
const DeleteDevices = lazy(() =>
  import("./delete-devices.tsx").then((module) => ({ default: module.DeleteDevices })),
);

/** What is done with the devices that are selected. */
interface SelectionActionsProps {
  readonly ids: ReadonlySet<string>;
  /** There are devices that match and are not read yet. */
  readonly more: boolean;
  /** Those that are not read yet are selected, too, and being read: nothing can be done with all before. */
  readonly gathering: boolean;
  /** Selects all that match, also those that are not read yet. */
  readonly onSelectMatching: () => void;
  readonly onClear: () => void;
}

type Action = "delete" | "label" | "call";

/**
 * Stands above the list while devices are selected. The dialog of an action stays when none is any more: those that it worked
 * on may be deleted.
 */
export function SelectionActions(props: SelectionActionsProps) {
  const { ids, more, gathering, onSelectMatching, onClear } = props;
  const [action, setAction] = useState<{ readonly kind: Action; readonly ids: readonly string[] } | null>(
    null,
  );
  // What is worked on is what was selected when it was begun, whatever becomes of the selection.
  const begin = (kind: Action) => setAction({ kind, ids: [...ids] });
  const close = () => setAction(null);
  return (
    <>
      {ids.size > 0 && (
        <Paper withBorder px="sm" py={6}>
          <Group gap="xs">
            <Text size="sm" fw={500} role="status">
              {ids.size.toLocaleString("en")} selected{gathering && ", reading on"}
            </Text>
            {more && !gathering && (
              <Button size="compact-sm" variant="subtle" onClick={onSelectMatching}>
                Select all that match
              </Button>
            )}
            <Group gap="xs" ml="auto">
              <Button
                size="xs"
                variant="default"
                leftSection={<Icon name="call" size={15} />}
                disabled={gathering}
                onClick={() => begin("call")}
              >
                Call a function
              </Button>
              <Button
                size="xs"
                variant="default"
                leftSection={<Icon name="label" size={15} />}
                disabled={gathering}
                onClick={() => begin("label")}
              >
                Label
              </Button>
              <Button
                size="xs"
                variant="light"
                color="red"
                leftSection={<Icon name="delete" size={15} />}
                disabled={gathering}
                onClick={() => begin("delete")}
              >
                Delete
              </Button>
              <Button size="xs" variant="subtle" color="gray" onClick={onClear}>
                Clear the selection
              </Button>
            </Group>
          </Group>
        </Paper>
      )}
      <Suspense>
        {action?.kind === "call" && <CallDevices ids={action.ids} onClose={close} />}
        {action?.kind === "label" && <LabelDevices ids={action.ids} onClose={close} />}
        {action?.kind === "delete" && <DeleteDevices ids={action.ids} onClose={close} onDeleted={onClear} />}
      </Suspense>
    </>
  );
}
