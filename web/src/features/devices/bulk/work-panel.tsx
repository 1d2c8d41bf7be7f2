import { Button, Group, List, Paper, Progress, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useVirtualizer } from "@tanstack/react-virtual";
import { X } from "lucide-react";
import { useEffect, useMemo, useRef } from "react";
import { useLocation } from "wouter";
import { ApiProblem } from "../../../api/api-problem.ts";
import { saveCsv } from "../../../components/csv.ts";
import { IconButton } from "../../../components/icon-button.tsx";
import { countText } from "../../../components/number-text.ts";
import { useWantedSelection } from "../shared/wanted-selection.ts";
import { type DeviceWork, useDeviceWork } from "./device-work.ts";
import type { DeviceOutcome } from "./for-each-device.ts";
import { useStartJob } from "./start-job.ts";

const rowHeight = 30;

/** The progress and outcomes of all work on devices, in a corner of each page; the work ends with the session. */
export function WorkPanel() {
  const [works, update] = useDeviceWork();
  const isWorking = works.some(({ state }) => state === "waiting" || state === "running");
  const current = useRef(works);
  useEffect(() => {
    current.current = works;
  }, [works]);
  useEffect(
    () => () => {
      for (const { cancel } of current.current) cancel();
    },
    [],
  );
  useEffect(() => {
    if (!isWorking) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [isWorking]);
  return (
    <Stack
      component="section"
      aria-label="Work on devices"
      gap="xs"
      pos="fixed"
      // Above the bar of a selection.
      bottom="calc(var(--bar) + 76px)"
      right="1rem"
      w="min(28rem, calc(100vw - 2rem))"
      mah="70dvh"
      style={{ overflow: "auto", zIndex: 150 }}
    >
      {works.map((work) => (
        <WorkCard
          key={work.key}
          work={work}
          onClose={() => update((before) => before.filter(({ key }) => key !== work.key))}
        />
      ))}
    </Stack>
  );
}

interface WorkCardProps {
  readonly work: DeviceWork;
  readonly onClose: () => void;
}

function WorkCard({ work, onClose }: WorkCardProps) {
  const { job, name, ids, done, state, outcomes, cancel } = work;
  const startJob = useStartJob();
  const [, setWanted] = useWantedSelection();
  const [, navigate] = useLocation();
  const [opened, { toggle }] = useDisclosure(true);
  const failed = outcomes.filter(({ kind }) => kind === "failed").map(({ id }) => id);
  const hasEnded = state === "finished" || state === "cancelled";
  return (
    <Paper withBorder shadow="md" p="sm" flex="none">
      <Stack gap="xs">
        <Group justify="space-between" wrap="nowrap" gap="xs">
          <Text size="sm" fw={600} lineClamp={2}>
            {name}
          </Text>
          {hasEnded ? (
            <IconButton label={`Close: ${name}`} tooltip="Close" onClick={onClose}>
              <X size={16} />
            </IconButton>
          ) : (
            <Button size="compact-xs" variant="default" flex="none" onClick={cancel}>
              Cancel the rest
            </Button>
          )}
        </Group>
        <Progress
          value={(outcomes.length / ids.length) * 100}
          color={failed.length > 0 ? "orange" : "green"}
          aria-label="Progress"
        />
        <Group justify="space-between" gap="xs">
          <Text size="sm" role="status">
            {state === "waiting"
              ? "Waits for the work before it"
              : `${countText(outcomes.length - failed.length)} of ${countText(ids.length)} ${done}${failed.length > 0 ? `, ${countText(failed.length)} failed` : ""}`}
            {state === "cancelled" &&
              `. Cancelled; ${countText(ids.length - outcomes.length)} were left as they are`}
          </Text>
          <Button size="compact-xs" variant="subtle" aria-expanded={opened} onClick={toggle}>
            {opened ? "Hide the results" : "Show the results"}
          </Button>
        </Group>
        {hasEnded && outcomes.length > 0 && (
          <Group gap="xs">
            {failed.length > 0 && (
              <>
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() => {
                    onClose();
                    startJob({ ...job, ids: failed });
                  }}
                >
                  Retry the failed
                </Button>
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() => {
                    setWanted(() => new Set(failed));
                    navigate("/devices");
                  }}
                >
                  Select the failed
                </Button>
              </>
            )}
            <Button
              size="compact-xs"
              variant="default"
              onClick={() =>
                saveCsv(`${name}.csv`, [["device", "outcome", "answer"], ...outcomes.map(csvRow)])
              }
            >
              Save as CSV
            </Button>
          </Group>
        )}
        {opened && outcomes.length > 0 && <Results outcomes={outcomes} done={done} />}
      </Stack>
    </Paper>
  );
}

interface ResultsProps {
  readonly outcomes: readonly DeviceOutcome[];
  readonly done: string;
}

/** The outcomes by device: failures first. */
function Results({ outcomes, done }: ResultsProps) {
  const ordered = useMemo(
    () => outcomes.toSorted((one, other) => Number(one.kind === "done") - Number(other.kind === "done")),
    [outcomes],
  );
  const frame = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: ordered.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  });
  const shown = virtualizer.getVirtualItems();
  return (
    <Paper
      withBorder
      component="section"
      ref={frame}
      mah="12rem"
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
  );
}

/** The line of an outcome in a file. */
function csvRow(outcome: DeviceOutcome): readonly string[] {
  if (outcome.kind === "failed") return [outcome.id, "failed", textOf(outcome.error)];
  return [outcome.id, "done", outcome.result === undefined ? "" : JSON.stringify(outcome.result)];
}

function textOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return error instanceof ApiProblem ? `${message} (${error.reason})` : message;
}

function Result({ outcome, done }: { readonly outcome: DeviceOutcome; readonly done: string }) {
  if (outcome.kind === "done")
    return (
      <Text span ff="monospace" size="xs">
        {outcome.result === undefined ? done : JSON.stringify(outcome.result)}
      </Text>
    );
  const text = textOf(outcome.error);
  // A line is cut at the edge of the panel.
  return (
    <Text span inherit c="var(--mantine-color-error)" title={text}>
      {text}
    </Text>
  );
}
