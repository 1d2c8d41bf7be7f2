import { Button, Group, List, Paper, Progress, Stack, Text } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type FormEvent, type ReactNode, useMemo, useRef } from "react";
import { ApiProblem } from "../../../api/api-problem.ts";
import { Dialog } from "../../../components/dialog.tsx";
import { SubmitOrCancel } from "../../../components/form-dialog.tsx";
import type { Outcome } from "./for-each-device.ts";
import { type DeviceWork, useDeviceWork } from "./use-device-work.ts";

const rowHeight = 30;

/** Properties of each dialog for work on many devices. */
export interface DevicesDialogProps {
  readonly ids: readonly string[];
  readonly onClose: () => void;
}

/** Properties of {@link WorkDialog}. */
interface WorkDialogProps extends DeviceWork {
  readonly ids: readonly string[];
  readonly title: string;
  /** The form before the work starts. */
  readonly children: ReactNode;
  /** Label of the button that starts the work. */
  readonly action: string;
  readonly destructive?: boolean;
  /** The form is complete and valid. */
  readonly ready: boolean;
  /** Participle of the work, as in "3 of 5 deleted". */
  readonly done: string;
  readonly onClose: (started: boolean) => void;
}

/** A form, then the progress and outcomes of work on many devices, which can be cancelled. */
export function WorkDialog(props: WorkDialogProps) {
  const { ids, title, children, action, destructive = false, ready, done, onClose, ...work } = props;
  const { state, outcomes, start, cancel } = useDeviceWork(work);
  const close = () => onClose(state !== "idle");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (ready && state === "idle") start(ids);
  };
  return (
    <Dialog onClose={close} title={title} size="lg" locked={state === "running"}>
      <form onSubmit={submit}>
        {state === "idle" ? (
          <Stack>
            {children}
            <SubmitOrCancel action={action} disabled={!ready} destructive={destructive} onCancel={close} />
          </Stack>
        ) : (
          <Stack>
            <WorkProgress
              total={ids.length}
              outcomes={outcomes}
              done={done}
              isCancelled={state === "cancelled"}
            />
            <Group justify="flex-end">
              {state === "running" ? (
                <Button variant="default" onClick={cancel}>
                  Cancel the rest
                </Button>
              ) : (
                <Button onClick={close} data-autofocus>
                  Close
                </Button>
              )}
            </Group>
          </Stack>
        )}
      </form>
    </Dialog>
  );
}

/** The devices in the title of a dialog. */
export function inWords(ids: readonly string[]): string {
  return ids.length === 1 ? `${ids[0]}` : `${ids.length} devices`;
}

interface WorkProgressProps {
  readonly total: number;
  readonly outcomes: readonly Outcome[];
  readonly done: string;
  readonly isCancelled: boolean;
}

/** Progress of work on many devices, and its outcomes: failures first. */
function WorkProgress({ total, outcomes, done, isCancelled }: WorkProgressProps) {
  const ordered = useMemo(
    () => outcomes.toSorted((one, other) => Number(one.kind === "done") - Number(other.kind === "done")),
    [outcomes],
  );
  const failed = outcomes.filter(({ kind }) => kind === "failed").length;
  const frame = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: ordered.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  });
  const shown = virtualizer.getVirtualItems();
  return (
    <Stack gap="xs">
      <Progress
        value={total === 0 ? 100 : (outcomes.length / total) * 100}
        color={failed > 0 ? "orange" : "teal"}
        aria-label="Progress"
      />
      <Group justify="space-between" role="status">
        <Text size="sm">
          {outcomes.length - failed} of {total} {done}
          {failed > 0 && `, ${failed} failed`}
        </Text>
        {isCancelled && <Text size="sm">Cancelled; {total - outcomes.length} were left as they are</Text>}
      </Group>
      <Paper
        withBorder
        component="section"
        ref={frame}
        h="14rem"
        style={{ overflow: "auto" }}
        aria-label="Results by device"
        tabIndex={0}
      >
        <List listStyleType="none" h={virtualizer.getTotalSize()} pt={shown[0]?.start ?? 0}>
          {ordered.slice(shown[0]?.index, (shown.at(-1)?.index ?? -1) + 1).map((outcome) => (
            <Text component="li" key={outcome.id} size="sm" lh={`${rowHeight}px`} px="xs" truncate>
              <strong>{outcome.id}</strong> <Result outcome={outcome} done={done} />
            </Text>
          ))}
        </List>
      </Paper>
    </Stack>
  );
}

function Result({ outcome, done }: { readonly outcome: Outcome; readonly done: string }) {
  if (outcome.kind === "done")
    return (
      <Text span ff="monospace" size="xs">
        {outcome.result === undefined ? done : JSON.stringify(outcome.result)}
      </Text>
    );
  const { error } = outcome;
  return (
    <Text span inherit c="var(--mantine-color-error)">
      {error instanceof Error ? error.message : String(error)}
      {error instanceof ApiProblem && ` (${error.reason})`}
    </Text>
  );
}
