import type { Execution } from "@devmesh/contracts/model/execution";
import type { Job } from "@devmesh/contracts/model/job";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { countText, shareText } from "../../components/number-text.ts";
import { stageWords } from "../devices/shared/execution-words.ts";
import styles from "./jobs.module.css";

/** Devices under way whose stages are counted; a job has 100 at a time unless it says otherwise. */
const mostCounted = 1_000;

/** How often they are counted, in milliseconds. */
const countMs = 2_000;

const stages = ["preparing", "transferring", "rebooting", "confirming"] as const;

/** In which stage of the update the devices are that are under way. */
export function UpdateStages({ job: { id } }: { readonly job: Job }) {
  const api = useApi();
  const { data } = useReading({
    queryKey: [...queryKeys.jobExecutions(id), "stages"],
    queryFn: ({ signal }) =>
      api.call("listJobExecutions", { params: { id }, query: { state: "sent", limit: mostCounted }, signal }),
    staleTime: 0,
    refetchInterval: countMs,
  });
  if (data === undefined) return null;
  const counts = countStages(data);
  const transferred = transferredOf(data);
  return (
    <ul className={styles.updates} aria-label="Stages of the update">
      {stages.map((stage) => (
        <li key={stage} data-stage={stage}>
          <b>{countText(counts[stage])}</b> {stageWords[stage]}
          {stage === "transferring" && transferred !== null && <small>{shareText(transferred)}</small>}
        </li>
      ))}
    </ul>
  );
}

/** Number of executions in each stage of an update. */
export function countStages(
  executions: readonly Pick<Execution, "stage">[],
): Record<(typeof stages)[number], number> {
  const counts = { preparing: 0, transferring: 0, rebooting: 0, confirming: 0 };
  for (const { stage } of executions) if (stage !== null && stage !== "reporting") counts[stage] += 1;
  return counts;
}

/** How much of the file the devices have that are transferring it, on average: 0 to 1; null where nobody knows. */
export function transferredOf(executions: readonly Pick<Execution, "stage" | "percent">[]): number | null {
  const percents = executions.flatMap(({ stage, percent }) =>
    stage === "transferring" && percent !== null ? [percent] : [],
  );
  return percents.length === 0 ? null : percents.reduce((sum, one) => sum + one, 0) / percents.length / 100;
}
