import type { Execution } from "@devmesh/contracts/model/execution";
import { Anchor, Button, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Hourglass } from "lucide-react";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { Card } from "../../../components/card.tsx";
import { Confirmation } from "../../../components/confirmation.tsx";
import { type Column, DataTable } from "../../../components/data-table.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { Failure } from "../../../components/failure.tsx";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { StateBadge } from "../../../components/state.tsx";
import { Waiting } from "../../../components/waiting.tsx";
import { useFrames } from "../../../live/live-updates.tsx";
import { ExecutionProgress } from "../shared/execution-progress.tsx";
import { executionLook, hasEnded, stateText } from "../shared/execution-words.ts";
import { useActionText } from "../shared/use-action-text.ts";
import type { SectionProps } from "./section.ts";

/** Executions that are shown; more are in the API. */
const mostShown = 100;

/** How often the progress of an update is read, in milliseconds. */
const progressMs = 2_000;

/** What waits for a device, and what it did: calls that wait until it listens. */
export function WorkSection({ device: { id } }: SectionProps) {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [sent, setSent] = useState<Execution | null>(null);
  const queryKey = queryKeys.executions(id);
  const { data, error, isPending, refetch } = useReading({
    queryKey,
    queryFn: ({ signal }) =>
      api.call("listExecutions", { params: { id }, query: { limit: mostShown }, signal }),
    staleTime: 0,
    // No frame reports how much of a file a device has.
    refetchInterval: ({ state: { data: held } }) =>
      held?.some(({ stage }) => stage !== null && stage !== "reporting") && progressMs,
  });
  const textOf = useActionText(data?.map(({ action }) => action) ?? []);
  useFrames((frames) => {
    if (frames.some((frame) => frame.id === id && frame.name === "execution"))
      void queries.invalidateQueries({ queryKey });
  });
  const cancel = async (execution: Execution, force: boolean) => {
    await api.call("cancelExecution", {
      params: { id: execution.id },
      body: { state: "cancelled", ...(force && { force }) },
    });
    await refetch();
  };
  const cancelling = useMutation({ mutationFn: (execution: Execution) => cancel(execution, false) });
  return (
    <>
      <Failure
        error={error}
        title="The work of the device could not be read"
        onRetry={() => void refetch()}
      />
      <Failure error={cancelling.error} title="It could not be cancelled" />
      {isPending && <Waiting rows={4} />}
      {data?.length === 0 && (
        <EmptyState
          Icon={Hourglass}
          title="Nothing waits for this device"
          next="Call a function"
          onNext={() => navigate(`/devices/${id}/rpc`)}
        >
          A call that waits is sent as soon as the device listens, and is listed here with its outcome.
        </EmptyState>
      )}
      {data !== undefined && data.length > 0 && (
        <Card flush>
          <DataTable
            label="Work of the device, newest first"
            minWidth={720}
            columns={columnsOf(textOf, (execution) =>
              execution.state === "sent" ? setSent(execution) : cancelling.mutate(execution),
            )}
            rows={data}
            keyOf={(execution) => execution.id}
          />
        </Card>
      )}
      {sent !== null && (
        <Confirmation
          title={`Cancel ${textOf(sent.action)}?`}
          action="End it here"
          run={() => cancel(sent, true)}
          onClose={() => setSent(null)}
        >
          It was sent, so the device may do it all the same. Its answer is dropped.
        </Confirmation>
      )}
    </>
  );
}

function columnsOf(
  textOf: (action: Execution["action"]) => string,
  onCancel: (execution: Execution) => void,
): readonly Column<Execution>[] {
  return [
    {
      heading: "State",
      cell: (execution) => (
        <StateBadge look={executionLook[execution.state]}>{stateText(execution)}</StateBadge>
      ),
    },
    {
      heading: "Work",
      namesRow: true,
      cell: ({ action, job_id }) =>
        job_id === null ? (
          <Text span size="xs" ff="monospace" lineClamp={2}>
            {textOf(action)}
          </Text>
        ) : (
          <Anchor component={Link} href={`/jobs/${job_id}`} size="xs" ff="monospace" lineClamp={2}>
            {textOf(action)}
          </Anchor>
        ),
    },
    {
      heading: "Outcome",
      cell: (execution) => <ExecutionProgress execution={execution} />,
    },
    { heading: "Created", cell: ({ created_at }) => <RelativeTime at={created_at} /> },
    {
      heading: "Ends",
      cell: ({ ended_at, expires_at }) => <RelativeTime at={ended_at ?? expires_at} />,
    },
    {
      heading: "Actions",
      hidesHeading: true,
      style: { ta: "end" },
      cell: (execution) =>
        !hasEnded(execution) && (
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`Cancel ${textOf(execution.action)}`}
            onClick={() => onCancel(execution)}
          >
            Cancel
          </Button>
        ),
    },
  ];
}
