import { Button } from "@mantine/core";
import { Package, SlidersHorizontal, SquareTerminal, Tag as TagIcon, Trash2 } from "lucide-react";
import { Suspense, useState } from "react";
import { useLocation } from "wouter";
import { lazyView } from "../../../components/lazy-view.ts";
import { countText } from "../../../components/number-text.ts";
import { SelectionBar } from "../../../components/selection-bar.tsx";
import { useJobTarget } from "../shared/job-target.ts";

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

/** What jobs do, and where the page of one device does it. */
const jobs = [
  { kind: "rpc", label: "Call a function", Icon: SquareTerminal, section: "rpc" },
  { kind: "shadow", label: "Set desired", Icon: SlidersHorizontal, section: "shadow" },
  { kind: "firmware", label: "Update firmware", Icon: Package, section: null },
] as const;

const dialogs = [
  { kind: "label", label: "Label", Icon: TagIcon },
  { kind: "delete", label: "Delete", Icon: Trash2, isDanger: true },
] as const;

/** An action and the devices that were selected at its start. */
interface StartedAction {
  readonly kind: (typeof dialogs)[number]["kind"];
  readonly ids: readonly string[];
}

/** Actions for the selected devices. */
export function SelectionActions(props: SelectionActionsProps) {
  const { ids, matching, more, gathering, onSelectMatching, onClear } = props;
  const [action, setAction] = useState<StartedAction | null>(null);
  const close = () => setAction(null);
  const [, setTarget] = useJobTarget();
  const [, navigate] = useLocation();
  const begin = ({ kind, section }: (typeof jobs)[number]) => {
    const [only = ""] = ids;
    if (ids.size === 1 && section !== null) return navigate(`/devices/${only}/${section}`);
    setTarget(() => [...ids]);
    const target: Record<string, string> = matching === null ? { target: "ids" } : { where: matching };
    navigate(`/jobs/new?${new URLSearchParams({ kind, ...target })}`);
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
          {jobs.map((job) => (
            <Button
              key={job.kind}
              size="xs"
              variant="subtle"
              leftSection={<job.Icon size={16} />}
              disabled={gathering && matching === null}
              onClick={() => begin(job)}
            >
              {job.label}
            </Button>
          ))}
          {dialogs.map(({ kind, label, Icon, ...look }) => (
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
        {action?.kind === "label" && <LabelDevices ids={action.ids} onClose={close} />}
        {action?.kind === "delete" && <DeleteDevices ids={action.ids} onClose={close} onStarted={onClear} />}
      </Suspense>
    </>
  );
}
