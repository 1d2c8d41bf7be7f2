import { Button, Group, Paper, Text } from "@mantine/core";
import { MessageSquare, SlidersHorizontal, Tag as TagIcon, Trash2 } from "lucide-react";
import { Suspense, useState } from "react";
import { lazyView } from "../../../components/lazy-view.ts";

const CallDevices = lazyView(async () => (await import("../bulk/call-devices.tsx")).CallDevices);
const SetDesired = lazyView(async () => (await import("../bulk/set-desired.tsx")).SetDesired);
const LabelDevices = lazyView(async () => (await import("../bulk/label-devices.tsx")).LabelDevices);
const DeleteDevices = lazyView(async () => (await import("../bulk/delete-devices.tsx")).DeleteDevices);

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

const actions = [
  { kind: "call", label: "Call a function", Icon: MessageSquare, look: { variant: "default" } },
  { kind: "desired", label: "Set desired", Icon: SlidersHorizontal, look: { variant: "default" } },
  { kind: "label", label: "Label", Icon: TagIcon, look: { variant: "default" } },
  { kind: "delete", label: "Delete", Icon: Trash2, look: { variant: "light", color: "red" } },
] as const;

/** An action and the devices that were selected at its start. */
interface StartedAction {
  readonly kind: (typeof actions)[number]["kind"];
  readonly ids: readonly string[];
}

/** Actions for the selected devices. */
export function SelectionActions(props: SelectionActionsProps) {
  const { ids, more, gathering, onSelectMatching, onClear } = props;
  const [action, setAction] = useState<StartedAction | null>(null);
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
              {actions.map(({ kind, label, Icon, look }) => (
                <Button
                  key={kind}
                  size="xs"
                  leftSection={<Icon size={15} />}
                  disabled={gathering}
                  onClick={() => setAction({ kind, ids: [...ids] })}
                  {...look}
                >
                  {label}
                </Button>
              ))}
              <Button size="xs" variant="subtle" color="gray" onClick={onClear}>
                Clear the selection
              </Button>
            </Group>
          </Group>
        </Paper>
      )}
      <Suspense>
        {action?.kind === "call" && <CallDevices ids={action.ids} onClose={close} />}
        {action?.kind === "desired" && <SetDesired ids={action.ids} onClose={close} />}
        {action?.kind === "label" && <LabelDevices ids={action.ids} onClose={close} />}
        {action?.kind === "delete" && <DeleteDevices ids={action.ids} onClose={close} onStarted={onClear} />}
      </Suspense>
    </>
  );
}
