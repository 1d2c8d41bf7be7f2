import { Button, Group, Paper, Text } from "@mantine/core";
import { MessageSquare, Tag as TagIcon, Trash2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";

const CallDevices = lazy(() =>
  import("../bulk/call-devices.tsx").then((module) => ({ default: module.CallDevices })),
);
const LabelDevices = lazy(() =>
  import("../bulk/label-devices.tsx").then((module) => ({ default: module.LabelDevices })),
);
const DeleteDevices = lazy(() =>
  import("../bulk/delete-devices.tsx").then((module) => ({ default: module.DeleteDevices })),
);

/** Properties of {@link SelectionActions}. */
interface SelectionActionsProps {
  readonly ids: ReadonlySet<string>;
  /** More matching devices can be read. */
  readonly more: boolean;
  /** All matching devices are selected and still being read; actions have to wait. */
  readonly gathering: boolean;
  /** Selects all matching devices, also unread ones. */
  readonly onSelectMatching: () => void;
  readonly onClear: () => void;
}

type Action = "delete" | "label" | "call";

/**
 * Actions for the selected devices. The dialog of an action stays open without a selection, as the action may delete
 * the devices.
 */
export function SelectionActions(props: SelectionActionsProps) {
  const { ids, more, gathering, onSelectMatching, onClear } = props;
  const [action, setAction] = useState<{ readonly kind: Action; readonly ids: readonly string[] } | null>(
    null,
  );
  // An action keeps the devices that were selected at its start.
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
                leftSection={<MessageSquare size={15} />}
                disabled={gathering}
                onClick={() => begin("call")}
              >
                Call a function
              </Button>
              <Button
                size="xs"
                variant="default"
                leftSection={<TagIcon size={15} />}
                disabled={gathering}
                onClick={() => begin("label")}
              >
                Label
              </Button>
              <Button
                size="xs"
                variant="light"
                color="red"
                leftSection={<Trash2 size={15} />}
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
