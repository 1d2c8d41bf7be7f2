import { Button } from "@mantine/core";
import { ListChecks, SlidersHorizontal, SquareTerminal, Tag as TagIcon, Trash2 } from "lucide-react";
import { Suspense, useState } from "react";
import { useLocation } from "wouter";
import { lazyView } from "../../../components/lazy-view.ts";
import { countText } from "../../../components/number-text.ts";
import { SelectionBar } from "../../../components/selection-bar.tsx";
import { useJobTarget } from "../shared/job-target.ts";

const CallDevices = lazyView(async () => (await import("../bulk/call-devices.tsx")).CallDevices);
const SetDesired = lazyView(async () => (await import("../bulk/set-desired.tsx")).SetDesired);
const LabelDevices = lazyView(async () => (await import("../bulk/label-devices.tsx")).LabelDevices);
const DeleteDevices = lazyView(async () => (await import("../bulk/delete-devices.tsx")).DeleteDevices);

/** Properties of {@link SelectionActions}. */
interface SelectionActionsProps {
  readonly ids: ReadonlySet<string>;
  /** The condition that all selected devices meet, as text, where all that match are selected. */
  readonly matching: string | null;
  /** More matching devices can be read. */
  readonly more: boolean;
  /** All matching devices are selected and still being read; actions have to wait. */
  readonly gathering: boolean;
  /** Selects all matching devices, also unread ones. */
  readonly onSelectMatching: () => void;
  readonly onClear: () => void;
}

const actions = [
  { kind: "call", label: "Call a function", Icon: SquareTerminal },
  { kind: "desired", label: "Set desired", Icon: SlidersHorizontal },
  { kind: "label", label: "Label", Icon: TagIcon },
  { kind: "delete", label: "Delete", Icon: Trash2, isDanger: true },
] as const;

/** An action and the devices that were selected at its start. */
interface StartedAction {
  readonly kind: (typeof actions)[number]["kind"];
  readonly ids: readonly string[];
}

/** Actions for the selected devices. */
export function SelectionActions(props: SelectionActionsProps) {
  const { ids, matching, more, gathering, onSelectMatching, onClear } = props;
  const [action, setAction] = useState<StartedAction | null>(null);
  const close = () => setAction(null);
  const [, setTarget] = useJobTarget();
  const [, navigate] = useLocation();
  const makeJob = () => {
    setTarget(() => [...ids]);
    navigate(`/jobs/new?${new URLSearchParams(matching === null ? { target: "ids" } : { where: matching })}`);
  };
  return (
    <>
      {ids.size > 0 && (
        <SelectionBar
          count={`${countText(ids.size)} selected${gathering ? ", reading on" : ""}`}
          onClear={onClear}
        >
          {more && !gathering && (
            <Button size="xs" variant="subtle" onClick={onSelectMatching}>
              Select all that match
            </Button>
          )}
          <Button
            size="xs"
            variant="subtle"
            leftSection={<ListChecks size={16} />}
            disabled={gathering && matching === null}
            onClick={makeJob}
          >
            New job
          </Button>
          {actions.map(({ kind, label, Icon, ...look }) => (
            <Button
              key={kind}
              size="xs"
              variant="subtle"
              leftSection={<Icon size={16} />}
              disabled={gathering}
              data-danger={"isDanger" in look || undefined}
              onClick={() => setAction({ kind, ids: [...ids] })}
            >
              {label}
            </Button>
          ))}
        </SelectionBar>
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
