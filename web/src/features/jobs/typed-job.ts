import { describeTextError, parseConditionText } from "@devmesh/contracts/model/condition-text";
import { JobInput } from "@devmesh/contracts/model/job";
import { isJsonObject } from "@devmesh/contracts/model/json";
import type { z } from "zod";
import { describeFault, parseJson } from "../../components/parse-json.ts";
import { typedDuration } from "../../components/typed-duration.ts";
import { paramsIn } from "../devices/shared/call-form.tsx";
import { limitOf, type Pace } from "./job-pace.tsx";

/** A job as it is typed; a text may be empty for the default. */
export interface TypedJob extends Pace {
  readonly name: string;
  readonly kind: "rpc" | "shadow" | "labels" | "firmware";
  readonly func: string;
  /** JSON; empty for none. */
  readonly params: string;
  /** JSON. */
  readonly desired: string;
  readonly add: readonly string[];
  readonly remove: readonly string[];
  readonly firmware_id: string;
  readonly via: "url" | "shadow" | "push";
  /** Function that answers the version, and the pointer into its result. */
  readonly confirm_rpc: string;
  readonly confirm_pointer: string;
  /** Pointer to the version in the shadow. */
  readonly confirm_shadow: string;
  readonly commit: string;
  /** A duration, as are `timeout`, `retry_after` and `expires_in`. */
  readonly stable: string;
  readonly timeout: string;
  readonly chunk: number | string;
  readonly target: "where" | "ids" | "of_job";
  /** A condition as text; empty for all devices. */
  readonly where: string;
  /** Ids with blanks or commas between. */
  readonly ids: string;
  readonly of_job: string;
  /** Also devices that meet the condition later. */
  readonly continuous: boolean;
  /** Shares in percent with commas between; empty for no stages. */
  readonly stages: string;
  readonly hold: boolean;
  /** Share that pauses the job; empty for none. */
  readonly failed_percent: number | string;
  readonly attempts: number | string;
  readonly retry_after: string;
  readonly expires_in: string;
}

export const emptyJob: TypedJob = {
  name: "",
  kind: "rpc",
  func: "",
  params: "",
  desired: "",
  add: [],
  remove: [],
  firmware_id: "",
  via: "url",
  confirm_rpc: "",
  confirm_pointer: "",
  confirm_shadow: "",
  commit: "",
  stable: "",
  timeout: "",
  chunk: "",
  target: "where",
  where: "",
  ids: "",
  of_job: "",
  continuous: false,
  stages: "",
  hold: false,
  per_minute: "",
  concurrency: "",
  failed_percent: "",
  attempts: "",
  retry_after: "",
  expires_in: "",
};

type Faults = Partial<Record<keyof TypedJob, string>>;

/** The body of a job, and what is wrong in the fields that it comes from. */
interface ReadJob {
  readonly body: z.input<typeof JobInput> | null;
  readonly faults: Faults;
}

/** Reads a job as it is typed. */
export function readJob(typed: TypedJob): ReadJob {
  const faults: Faults = {};
  const retry = { ...number("attempts", typed.attempts), ...duration("after", typed.retry_after) };
  const body = {
    ...text("name", typed.name),
    target: targetOf(typed, faults),
    action: actionOf(typed, faults),
    ...(typed.continuous && typed.target === "where" && { continuous: true }),
    ...duration("expires_in", typed.expires_in),
    ...(Object.keys(retry).length > 0 && { retry }),
    rollout: {
      ...(typed.stages.trim() !== "" && {
        stages: typed.stages
          .split(/[\s,%]+/)
          .filter((part) => part !== "")
          .map((part) => ({ percent: Number(part), ...(typed.hold && { hold: true }) })),
      }),
      ...number("per_minute", typed.per_minute),
      ...number("concurrency", typed.concurrency),
    },
    ...(typed.failed_percent !== "" && { pause_at: { failed_percent: Number(typed.failed_percent) } }),
  };
  const parsed = JobInput.safeParse(body);
  for (const { path, message } of parsed.error?.issues ?? []) {
    const field = fieldOf(path, typed);
    faults[field] ??= message;
  }
  return { body: Object.keys(faults).length === 0 ? (body as z.input<typeof JobInput>) : null, faults };
}

/** A member of a body where something was typed. */
function text(name: string, typed: string): object {
  return typed.trim() === "" ? {} : { [name]: typed.trim() };
}

function duration(name: string, typed: string): object {
  return typed.trim() === "" ? {} : { [name]: typedDuration(typed) };
}

function number(name: string, typed: number | string): object {
  const limit = limitOf(typed);
  return limit === null ? {} : { [name]: limit };
}

function targetOf({ target, where, ids, of_job }: TypedJob, faults: Faults): unknown {
  if (target === "ids") return { ids: [...new Set(ids.split(/[\s,]+/).filter((id) => id !== ""))] };
  if (target === "of_job") return { of_job, states: ["failed", "timed_out"] };
  const parsed = parseConditionText(where);
  if ("condition" in parsed) return { where: parsed.condition };
  Object.assign(faults, { where: describeTextError(parsed.error) });
  return { where: {} };
}

function actionOf(typed: TypedJob, faults: Faults): unknown {
  const { kind, func, params, desired } = typed;
  if (kind === "firmware") return firmwareOf(typed);
  if (kind === "labels") return labelsOf(typed);
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

function labelsOf({ add, remove }: TypedJob): unknown {
  const labels = { ...(add.length > 0 && { add }), ...(remove.length > 0 && { remove }) };
  return { kind: "shadow", patch: { labels } };
}

function firmwareOf(typed: TypedJob): unknown {
  const { kind, firmware_id, via, confirm_rpc, confirm_pointer, confirm_shadow } = typed;
  const inResult = confirm_rpc.trim() !== "" && { rpc: confirm_rpc.trim(), pointer: confirm_pointer.trim() };
  const inShadow = confirm_shadow.trim() !== "" && { shadow: confirm_shadow.trim() };
  const confirm = via === "shadow" ? inShadow : inResult;
  return {
    kind,
    firmware_id,
    via,
    ...(confirm && { confirm }),
    ...text("commit", typed.commit),
    ...duration("stable", typed.stable),
    ...duration("timeout", typed.timeout),
    ...(via === "push" && number("chunk", typed.chunk)),
  };
}

/** Fields by the members of an action of the same name. */
const ofAction = ["func", "firmware_id", "commit", "stable", "timeout", "chunk"] as const;

/** The field that a part of the body comes from. */
function fieldOf(path: readonly PropertyKey[], { kind, target, via }: TypedJob): keyof TypedJob {
  const [first, second, third] = path;
  if (first === "target") return target;
  if (first === "action") {
    const same = ofAction.find((field) => field === second);
    if (same !== undefined) return same;
    if (kind === "labels") return path.includes("remove") ? "remove" : "add";
    if (second !== "confirm")
      return kind === "rpc" ? "params" : kind === "shadow" ? "desired" : "firmware_id";
    if (via === "shadow") return "confirm_shadow";
    return third === "pointer" ? "confirm_pointer" : "confirm_rpc";
  }
  if (first === "rollout") return second === "per_minute" || second === "concurrency" ? second : "stages";
  if (first === "retry") return second === "after" ? "retry_after" : "attempts";
  if (first === "expires_in" || first === "continuous") return first;
  return first === "pause_at" ? "failed_percent" : "name";
}
