import type { Job } from "@devmesh/contracts/model/job";
import { Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { serverNow } from "../../api/server-clock.ts";
import { Card } from "../../components/card.tsx";
import { countText, shareText } from "../../components/number-text.ts";
import { remainingText } from "../../components/progress-text.ts";
import { longSpan } from "../../components/time-in-words.ts";
import { CountBar } from "./count-bar.tsx";
import {
  endedOf,
  type ProgressSample,
  paceOf,
  type StageFigures,
  stagesOf,
  withSample,
} from "./job-progress-figures.ts";
import { isOver } from "./job-words.ts";
import styles from "./jobs.module.css";
import { UpdateStages } from "./update-stages.tsx";

/** How often the end of a job is computed again, in milliseconds. */
const tickMs = 5_000;

/** How far a job is, by stages and states, and when it will end. */
export function JobProgress({ job }: { readonly job: Job }) {
  const text = useProgressText(job);
  const stages = stagesOf(job);
  return (
    <Card title="Progress">
      {stages.length > 0 && job.state !== "planning" && (
        <ol className={styles.stages} aria-label="Stages of the rollout">
          {stages.map((stage) => (
            <Stage key={stage.number} stage={stage} job={job} />
          ))}
        </ol>
      )}
      <CountBar job={job} />
      <Text size="sm" c="var(--text-2)" role="status">
        {text}
      </Text>
      {job.action.kind === "firmware" && job.counts.sent > 0 && <UpdateStages job={job} />}
    </Card>
  );
}

interface StageProps {
  readonly stage: StageFigures;
  readonly job: Job;
}

function Stage({ stage: { number, percent, devices, upTo, released }, job }: StageProps) {
  const current = job.stage ?? 1;
  const rule = job.rollout.stages[number - 1];
  const isCurrent = number === current && !isOver(job);
  const succeeded = Math.min(1, job.counts.succeeded / Math.max(1, upTo));
  const next =
    rule && `, the next begins at ${rule.proceed_at} %${rule.hold ? " when somebody continues it" : ""}`;
  return (
    <li
      data-current={isCurrent || undefined}
      aria-current={isCurrent ? "step" : undefined}
      style={{ flexGrow: Math.max(1, devices) }}
    >
      <span className={styles.stageHead}>
        <b>Stage {countText(number)}</b> {percent} % <span>{countText(devices)}</span>
      </span>
      <span className={styles.stageBar} aria-hidden="true">
        <i style={{ width: `${released * 100}%` }} />
      </span>
      <small>
        {number < current || job.state === "done"
          ? "through"
          : number > current
            ? "waits"
            : `${shareText(succeeded)} have succeeded${next ?? ""}`}
      </small>
    </li>
  );
}

/** How many devices have ended, how fast, and how long it takes at that pace. */
function useProgressText(job: Job): string {
  const samples = useRef<readonly ProgressSample[]>([]);
  const [now, setNow] = useState(serverNow);
  const ended = endedOf(job);
  useEffect(() => {
    samples.current = withSample(samples.current, { at: serverNow(), ended });
    setNow(serverNow());
  }, [ended]);
  const goesOn = job.state === "running";
  useEffect(() => {
    if (!goesOn) return;
    const timer = setInterval(() => setNow(serverNow()), tickMs);
    return () => clearInterval(timer);
  }, [goesOn]);
  if (job.state === "planning") return `${countText(job.devices)} devices found so far.`;
  const share = shareText(ended / Math.max(1, job.devices));
  const parts = [`${countText(ended)} of ${countText(job.devices)} devices have ended, ${share}.`];
  if (job.released < job.devices && !isOver(job))
    parts.push(`${countText(job.released)} may be sent to so far.`);
  const pace = goesOn ? paceOf(samples.current, job, now) : null;
  if (pace !== null && ended < job.devices) {
    const left = remainingText(pace.leftMs);
    parts.push(`${paceText(pace.perMinute)}${job.continuous ? "" : `, ${left} at this pace`}.`);
  } else if (goesOn && ended < job.devices && job.counts.sent === 0)
    parts.push("The others have to come online.");
  if (job.ended_at !== null)
    parts.push(
      `It took ${longSpan(Math.max(1_000, Date.parse(job.ended_at) - Date.parse(job.created_at)))}.`,
    );
  if (job.continuous && !isOver(job)) parts.push("Devices that meet the condition later are taken in.");
  return parts.join(" ");
}

function paceText(perMinute: number): string {
  if (perMinute >= 1) return `${countText(Math.round(perMinute))} a minute`;
  return perMinute * 60 >= 1 ? `${countText(Math.round(perMinute * 60))} an hour` : "Fewer than one an hour";
}
