import { describeTextError, parseConditionText } from "@devmesh/contracts/model/condition-text";
import { NewJob } from "@devmesh/contracts/model/job";
import { isJsonObject } from "@devmesh/contracts/model/json";
import type { z } from "zod";
import { describeFault, parseJson } from "../../components/parse-json.ts";
import { paramsIn } from "../devices/shared/call-form.tsx";
import { limitOf, type Pace } from "./job-pace.tsx";

/** A job as it is typed. */
export interface TypedJob extends Pace {
  readonly name: string;
  readonly kind: "rpc" | "shadow";
  readonly func: string;
  /** JSON; empty for none. */
  readonly params: string;
  /** JSON. */
  readonly desired: string;
  readonly target: "where" | "ids" | "of_job";
  /** A condition as text; empty for all devices. */
  readonly where: string;
  /** Ids with blanks or commas between. */
  readonly ids: string;
  readonly of_job: string;
  /** Shares in percent with commas between; empty for no stages. */
  readonly stages: string;
  readonly hold: boolean;
  /** Share that pauses the job; empty for none. */
  readonly failed_percent: number | string;
}

/** The body of a job, and what is wrong in the fields that it comes from. */
interface ReadJob {
  readonly body: z.input<typeof NewJob> | null;
  readonly faults: Partial<Record<keyof TypedJob, string>>;
}

/** Reads a job as it is typed. */
export function readJob(typed: TypedJob): ReadJob {
  const faults: Partial<Record<keyof TypedJob, string>> = {};
  const body = {
    ...(typed.name.trim() !== "" && { name: typed.name.trim() }),
    target: targetOf(typed, faults),
    action: actionOf(typed, faults),
    rollout: {
      ...(typed.stages.trim() !== "" && {
        stages: typed.stages
          .split(/[\s,%]+/)
          .filter((text) => text !== "")
          .map((text) => ({ percent: Number(text), ...(typed.hold && { hold: true }) })),
      }),
      ...bound("per_minute", limitOf(typed.per_minute)),
      ...bound("concurrency", limitOf(typed.concurrency)),
    },
    ...(typed.failed_percent !== "" && { pause_at: { failed_percent: Number(typed.failed_percent) } }),
  };
  const parsed = NewJob.safeParse(body);
  for (const { path, message } of parsed.error?.issues ?? []) {
    const field = fieldOf(path, typed);
    faults[field] ??= message;
  }
  return { body: Object.keys(faults).length === 0 ? (body as z.input<typeof NewJob>) : null, faults };
}

function bound(name: keyof Pace, limit: number | null): object {
  return limit === null ? {} : { [name]: limit };
}

function targetOf({ target, where, ids, of_job }: TypedJob, faults: ReadJob["faults"]): unknown {
  if (target === "ids") return { ids: [...new Set(ids.split(/[\s,]+/).filter((id) => id !== ""))] };
  if (target === "of_job") return { of_job, states: ["failed", "timed_out"] };
  const parsed = parseConditionText(where);
  if ("condition" in parsed) return { where: parsed.condition };
  Object.assign(faults, { where: describeTextError(parsed.error) });
  return { where: {} };
}

function actionOf({ kind, func, params, desired }: TypedJob, faults: ReadJob["faults"]): unknown {
  if (kind === "rpc") {
    const { value, error } = paramsIn(params);
    if (error !== null) Object.assign(faults, { params: error });
    return { kind, func: func.trim(), ...(value !== undefined && { params: value }) };
  }
  const parsed = parseJson(desired);
  if (parsed.kind === "fault") Object.assign(faults, { desired: describeFault(parsed.fault) });
  else if (!isJsonObject(parsed.value) || Object.keys(parsed.value).length === 0)
    Object.assign(faults, { desired: "A JSON object with at least one member is needed." });
  return { kind, patch: { state: { desired: parsed.kind === "fault" ? {} : parsed.value } } };
}

/** The field that a part of the body comes from. */
function fieldOf(path: readonly PropertyKey[], { kind, target }: TypedJob): keyof TypedJob {
  const [first, second] = path;
  if (first === "target") return target;
  if (first === "action") return second === "func" ? "func" : kind === "rpc" ? "params" : "desired";
  if (first === "rollout") return second === "per_minute" || second === "concurrency" ? second : "stages";
  return first === "pause_at" ? "failed_percent" : "name";
}
