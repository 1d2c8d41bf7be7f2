import type { Execution, ExecutionState } from "@devmesh/contracts/model/execution";
import type { Job } from "@devmesh/contracts/model/job";
import { Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { StateBadge } from "../../components/state.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { ExecutionProgress } from "../devices/shared/execution-progress.tsx";
import { executionLook, stateText } from "../devices/shared/execution-words.ts";

/** Devices that are shown; more are in the API. */
const mostShown = 100;

/** How often the devices of a job that changes are read again, in milliseconds. */
const readMs = 2_000;

/** The devices of a job, those in one state or all, in the order of the rollout; read again as the job changes. */
export function JobExecutions({ job, state }: { readonly job: Job; readonly state: ExecutionState | "" }) {
  const api = useApi();
  const queries = useQueryClient();
  const { id, counts } = job;
  const queryKey = queryKeys.jobExecutions(id);
  const { data, error, isPending, refetch } = useReading({
    queryKey: [...queryKey, state],
    queryFn: ({ signal }) =>
      api.call("listJobExecutions", {
        params: { id },
        query: { limit: mostShown, ...(state !== "" && { state }) },
        signal,
      }),
    staleTime: 0,
    // No frame reports how much of a file a device has.
    refetchInterval: job.action.kind === "firmware" && counts.sent > 0 && readMs,
  });
  const known = JSON.stringify(counts);
  // The query itself reads first.
  const lastRead = useRef({ at: Date.now(), known });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the counts say that there is something to be read
  useEffect(() => {
    if (lastRead.current.known === known) return;
    const wait = Math.max(0, lastRead.current.at + readMs - Date.now());
    const timer = setTimeout(() => {
      lastRead.current = { at: Date.now(), known };
      void queries.invalidateQueries({ queryKey });
    }, wait);
    return () => clearTimeout(timer);
  }, [known]);
  return (
    <>
      <Failure error={error} title="The devices could not be read" onRetry={() => void refetch()} />
      {isPending && <Waiting rows={6} />}
      {data?.length === 0 && (
        <EmptyState title={state === "" ? "No devices yet" : "No device is in this state"} />
      )}
      {data !== undefined && data.length > 0 && (
        <DataTable
          label="Devices of the job"
          minWidth={560}
          columns={data.some(({ attempts }) => attempts > 1) ? columns : columnsOfFirstAttempts}
          rows={data}
          keyOf={(execution) => execution.id}
        />
      )}
    </>
  );
}

const columns: readonly Column<Execution>[] = [
  {
    heading: "Device",
    namesRow: true,
    cell: ({ device_id }) => (
      <Text
        component={Link}
        href={`/devices/${device_id}/work`}
        size="xs"
        ff="monospace"
        c="var(--text)"
        td="none"
      >
        {device_id}
      </Text>
    ),
  },
  {
    heading: "State",
    cell: (execution) => (
      <StateBadge look={executionLook[execution.state]}>{stateText(execution)}</StateBadge>
    ),
  },
  {
    heading: "Outcome",
    cell: (execution) => <ExecutionProgress execution={execution} />,
  },
  { heading: "Attempts", style: { ta: "end" }, cell: ({ attempts }) => countText(attempts) },
  {
    heading: "Since",
    cell: ({ ended_at, sent_at, created_at }) => <RelativeTime at={ended_at ?? sent_at ?? created_at} />,
  },
];

/** Without the attempts, which leaves their room to the outcome. */
const columnsOfFirstAttempts = columns.filter(({ heading }) => heading !== "Attempts");
