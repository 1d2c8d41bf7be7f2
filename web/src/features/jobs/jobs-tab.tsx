import type { Job } from "@devmesh/contracts/model/job";
import { Button, Text } from "@mantine/core";
import { ListChecks, Plus } from "lucide-react";
import { useLocation } from "wouter";
import { Card } from "../../components/card.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ListTab } from "../../components/list-tab.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { RowLink } from "../../components/row-link.tsx";
import { StateBadge } from "../../components/state.tsx";
import { actionText } from "../devices/shared/execution-words.ts";
import { CountBar } from "./count-bar.tsx";
import { jobLooks, jobStateText, jobTitle } from "./job-words.ts";
import { useJobs } from "./use-jobs.ts";

/** All jobs, newest first, live. */
export function JobsTab() {
  const { data, error, isPending, refetch } = useJobs();
  const [, navigate] = useLocation();
  return (
    <ListTab
      title="Jobs"
      count={data === undefined ? undefined : countText(data.length)}
      actions={
        <Button leftSection={<Plus size={16} />} onClick={() => navigate("/jobs/new")}>
          New job
        </Button>
      }
      filters={false}
      error={error}
      failure="The jobs could not be read"
      onRetry={() => void refetch()}
      isPending={isPending}
      empty={
        (data ?? []).length === 0 ? (
          <EmptyState
            Icon={ListChecks}
            title="There are no jobs yet"
            next="New job"
            onNext={() => navigate("/jobs/new")}
          >
            A job does one thing on many devices: it calls a function or changes the shadow, as fast as you
            let it, and waits for those that sleep.
          </EmptyState>
        ) : null
      }
    >
      <Card flush>
        <DataTable label="Jobs" minWidth={760} columns={columns} rows={data ?? []} keyOf={({ id }) => id} />
      </Card>
    </ListTab>
  );
}

const columns: readonly Column<Job>[] = [
  {
    heading: "Job",
    namesRow: true,
    cell: (job) => (
      <>
        <RowLink href={`/jobs/${job.id}`} lines={1}>
          {jobTitle(job)}
        </RowLink>
        {job.name !== null && (
          <Text size="xs" c="dimmed" ff="monospace" lineClamp={1}>
            {actionText(job.action)}
          </Text>
        )}
      </>
    ),
  },
  {
    heading: "State",
    cell: (job) => <StateBadge look={jobLooks[job.state]}>{jobStateText(job)}</StateBadge>,
  },
  { heading: "Progress", cell: (job) => <CountBar job={job} /> },
  {
    heading: "Succeeded",
    style: { ta: "end" },
    cell: ({ counts, devices }) => `${countText(counts.succeeded)} of ${countText(devices)}`,
  },
  { heading: "Created", cell: ({ created_at }) => <RelativeTime at={created_at} /> },
];
