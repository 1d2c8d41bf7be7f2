import { Group, Progress, Stack, Text } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import { ApiProblem } from "../../../api/api-problem.ts";
import type { Outcome } from "./for-each-device.ts";
import type { DeviceWork } from "./use-device-work.ts";
import styles from "./work-progress.module.css";

const rowHeight = 30;

/** Progress of work on many devices, and its outcomes: failures first. */
export function WorkProgress({ work, done }: { readonly work: DeviceWork; readonly done: string }) {
  const { state, total, outcomes } = work;
  const ordered = useMemo(
    () => [
      ...outcomes.filter(({ kind }) => kind === "failed"),
      ...outcomes.filter(({ kind }) => kind === "done"),
    ],
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
  if (state === "idle") return null;
  const succeeded = outcomes.length - failed;
  return (
    <Stack gap="xs">
      <Progress
        value={total === 0 ? 100 : (outcomes.length / total) * 100}
        color={failed > 0 ? "orange" : "teal"}
        aria-label="Progress"
      />
      <Group justify="space-between" role="status">
        <Text size="sm">
          {succeeded} of {total} {done}
          {failed > 0 && `, ${failed} failed`}
        </Text>
        {state === "cancelled" && (
          <Text size="sm">Cancelled; {total - outcomes.length} were left as they are</Text>
        )}
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by the keyboard */}
      <section ref={frame} className={styles.frame} aria-label="Results by device" tabIndex={0}>
        <ul
          className={styles.list}
          style={{ height: virtualizer.getTotalSize(), paddingTop: shown[0]?.start ?? 0 }}
        >
          {shown.map(({ index }) => {
            const outcome = ordered[index];
            return outcome === undefined ? null : (
              <li key={outcome.id} className={styles.row}>
                <strong>{outcome.id}</strong> <span data-kind={outcome.kind}>{wordsOf(outcome, done)}</span>
              </li>
            );
          })}
        </ul>
      </section>
    </Stack>
  );
}

function wordsOf(outcome: Outcome, done: string): string {
  if (outcome.kind === "done") return outcome.result === undefined ? done : JSON.stringify(outcome.result);
  const { error } = outcome;
  if (error instanceof ApiProblem) return `${error.message} (${error.reason})`;
  return error instanceof Error ? error.message : String(error);
}
