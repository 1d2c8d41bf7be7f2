import { type ExecutionState, ExecutionState as States } from "@devmesh/contracts/model/execution";
import type { Job, JobPatch } from "@devmesh/contracts/model/job";
import { Button, Checkbox, NativeSelect, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Pause, Play, RotateCcw, SkipForward } from "lucide-react";
import { useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { ApiProblem } from "../../api/api-problem.ts";
import { queryKeys } from "../../api/query-keys.ts";
import { Card } from "../../components/card.tsx";
import { Columns } from "../../components/columns.tsx";
import { Confirmation } from "../../components/confirmation.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { Page } from "../../components/page.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { Stat, StatStrip } from "../../components/stat-strip.tsx";
import { StateBadge } from "../../components/state.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { stateWords } from "../devices/shared/execution-words.ts";
import { useActionText } from "../devices/shared/use-action-text.ts";
import { JobExecutions } from "./job-executions.tsx";
import { JobMenu } from "./job-menu.tsx";
import { JobPace } from "./job-pace.tsx";
import { JobProgress } from "./job-progress.tsx";
import { countedStates, failedOf, isOver, jobLooks, jobStateText, jobTitle } from "./job-words.ts";
import styles from "./jobs.module.css";
import { useJob } from "./use-jobs.ts";

/** One job: how far it is, its devices, its pace, and what was done to it. */
export function JobPage() {
  const { id = "" } = useParams<{ id: string }>();
  const [, navigate] = useLocation();
  const { data: job, error, isPending, refetch } = useJob(id);
  const gone = error instanceof ApiProblem && error.status === 404;
  return (
    <Page
      title={job === undefined ? "Job" : jobTitle(job)}
      above={<Link href="/jobs">Jobs</Link>}
      state={job !== undefined && <StateBadge look={jobLooks[job.state]}>{jobStateText(job)}</StateBadge>}
      below={
        job !== undefined && (
          <>
            <Text span size="xs" ff="monospace" c="var(--text-2)" lineClamp={1}>
              <JobAction job={job} />
            </Text>
            <Text span size="xs" c="dimmed">
              created <RelativeTime at={job.created_at} />
            </Text>
          </>
        )
      }
      actions={job !== undefined && <JobActions job={job} />}
    >
      {gone ? (
        <div role="alert">
          <EmptyState title="There is no such job" next="All jobs" onNext={() => navigate("/jobs")} />
        </div>
      ) : (
        <Failure error={error} title="The job could not be read" onRetry={() => void refetch()} />
      )}
      {isPending && <Waiting />}
      {job !== undefined && !gone && <Content key={id} job={job} />}
    </Page>
  );
}

/** What a job does; of firmware with the name of the file. */
function JobAction({ job: { action } }: { readonly job: Job }) {
  return useActionText([action])(action);
}

function Content({ job }: { readonly job: Job }) {
  const [state, setState] = useState<ExecutionState | "">("");
  return (
    <>
      <StatStrip label="Devices by state">
        {countedStates
          .filter((name) => !rareStates.has(name) || job.counts[name] > 0)
          .map((name) => (
            <Stat
              key={name}
              term={stateWords[name]}
              value={countText(job.counts[name])}
              choice={{
                isChosen: state === name,
                label: `Show the devices that are ${stateWords[name]}`,
                onChoose: () => setState(state === name ? "" : name),
              }}
            />
          ))}
      </StatStrip>
      <JobProgress job={job} />
      <Columns>
        <div>
          <Card
            title="Devices"
            flush
            actions={
              <>
                <NativeSelect
                  aria-label="Devices in state"
                  size="xs"
                  value={state}
                  onChange={({ currentTarget: { value } }) => setState(States.safeParse(value).data ?? "")}
                  data={[
                    { value: "", label: "all" },
                    ...countedStates.map((name) => ({ value: name, label: stateWords[name] })),
                  ]}
                />
                <JobMenu job={job} />
              </>
            }
          >
            <JobExecutions job={job} state={state} />
          </Card>
        </div>
        <div>
          {!isOver(job) && <JobPace job={job} />}
          <Card title="Log">
            <ol className={styles.log} aria-label="Log of the job">
              {job.log.toReversed().map(({ at, what }) => (
                <li key={`${at} ${what}`}>
                  {what} <RelativeTime at={at} />
                </li>
              ))}
            </ol>
          </Card>
        </div>
      </Columns>
    </>
  );
}

/** Shown only where a device is in one. */
const rareStates: ReadonlySet<ExecutionState> = new Set(["expired", "cancelled"]);

/** What can be done with a job now. */
function JobActions({ job }: { readonly job: Job }) {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [cancelling, setCancelling] = useState(false);
  const [force, setForce] = useState(false);
  const change = async (body: JobPatch) => {
    const changed = await api.call("changeJob", { params: { id: job.id }, body });
    queries.setQueryData(queryKeys.job(job.id), changed);
  };
  const changing = useMutation({ mutationFn: change });
  const isPaused = job.state === "paused";
  return (
    <>
      <Failure error={changing.error} title="The job could not be changed" />
      {failedOf(job) > 0 && (
        <Button
          variant="default"
          leftSection={<RotateCcw size={16} />}
          onClick={() => navigate(`/jobs/new?of_job=${job.id}`)}
        >
          Retry the failed
        </Button>
      )}
      {!isOver(job) && (
        <>
          {job.stage !== null && job.stage <= job.rollout.stages.length && job.state !== "planning" && (
            <Button
              variant="default"
              leftSection={<SkipForward size={16} />}
              onClick={() => changing.mutate({ proceed: true })}
            >
              Next stage
            </Button>
          )}
          <Button
            variant="default"
            leftSection={isPaused ? <Play size={16} /> : <Pause size={16} />}
            loading={changing.isPending}
            onClick={() => changing.mutate({ state: isPaused ? "running" : "paused" })}
          >
            {isPaused ? "Run" : "Pause"}
          </Button>
          <Button variant="default" data-danger onClick={() => setCancelling(true)}>
            Cancel
          </Button>
        </>
      )}
      {cancelling && (
        <Confirmation
          title="Cancel the job?"
          action="Cancel the job"
          run={() => change({ state: "cancelled", ...(force && job.counts.sent > 0 && { force }) })}
          onClose={() => setCancelling(false)}
        >
          {countText(job.counts.queued)} devices that wait are left as they are. What was sent ends by itself.
          {job.counts.sent > 0 && (
            <Checkbox
              mt="sm"
              label={`Also end the ${countText(job.counts.sent)} that were sent`}
              description="Here alone: the devices may still do it, and nobody learns whether they did."
              checked={force}
              onChange={({ currentTarget }) => setForce(currentTarget.checked)}
            />
          )}
        </Confirmation>
      )}
    </>
  );
}
