import { maxSeriesOfAnswer } from "@devmesh/contracts/model/series";
import { Button } from "@mantine/core";
import { ChartLine, Package, SlidersHorizontal, SquareTerminal, Tag as TagIcon, Trash2 } from "lucide-react";
import { Suspense, useState } from "react";
import { useLocation } from "wouter";
import { lazyView } from "../../../components/lazy-view.ts";
import { countText } from "../../../components/number-text.ts";
import { SelectionBar } from "../../../components/selection-bar.tsx";
import { useJobTarget } from "../shared/job-target.ts";

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
  { kind: "labels", label: "Label", Icon: TagIcon, section: null },
  { kind: "firmware", label: "Update firmware", Icon: Package, section: null },
] as const;

/** Actions for the selected devices. */
export function SelectionActions(props: SelectionActionsProps) {
  const { ids, matching, more, gathering, onSelectMatching, onClear } = props;
  /** The devices that were selected when their deletion was asked for; null before. */
  const [deleted, setDeleted] = useState<readonly string[] | null>(null);
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
          <Button
            size="xs"
            variant="subtle"
            leftSection={<ChartLine size={16} />}
            disabled={gathering || ids.size > maxSeriesOfAnswer}
            title={ids.size > maxSeriesOfAnswer ? `Of at most ${maxSeriesOfAnswer} devices` : undefined}
            onClick={() => navigate(`/data/devices?${new URLSearchParams({ ids: [...ids].join() })}`)}
          >
            Chart
          </Button>
          <Button
            size="xs"
            variant="subtle"
            leftSection={<Trash2 size={16} />}
            disabled={gathering}
            data-danger
            onClick={() => setDeleted([...ids])}
          >
            Delete
          </Button>
        </SelectionBar>
      )}
      <Suspense>
        {deleted !== null && (
          <DeleteDevices ids={deleted} onClose={() => setDeleted(null)} onStarted={onClear} />
        )}
      </Suspense>
    </>
  );
}
