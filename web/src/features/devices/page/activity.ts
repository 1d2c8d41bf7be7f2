import { Alert } from "@devmesh/contracts/model/alert";
import { Device } from "@devmesh/contracts/model/device";
import type { Diagnosis } from "@devmesh/contracts/model/diagnostics";
import { Execution } from "@devmesh/contracts/model/execution";
import type { Notification } from "@devmesh/contracts/model/notification";
import { durationText } from "../../../components/number-text.ts";
import { alertOutcome } from "../../alerts/alert-words.ts";
import { diagnosisDetail, diagnosisName, isProblem } from "../shared/diagnosis-words.ts";
import { actionText, hasEnded, outcomeText, stateText } from "../shared/execution-words.ts";
import { leafChanges } from "../shared/json-changes.ts";
import type { PastCall } from "./device-calls.ts";

/** What kind of thing happened; each has its icon. */
export type ActivityKind = "connected" | "disconnected" | "problem" | "call" | "event" | "change" | "alert";

/** Something that happened to a device. */
export interface DeviceActivity {
  readonly key: string;
  readonly kind: ActivityKind;
  /** RFC 3339. */
  readonly at: string;
  readonly title: string;
  readonly detail: string;
}

/** Changed values that a line names. */
const mostChanges = 3;

/** Time in which a call of this page and the frame of a call with its name are the same one, in milliseconds. */
const sameCallMs = 10_000;

/** What is known of a device: its diagnostics, frames of its stream, oldest first, and calls of this session. */
interface ActivitySources {
  readonly diagnostics: readonly Diagnosis[];
  readonly frames: readonly Notification[];
  readonly calls: readonly PastCall[];
}

/** All that happened in one list, newest first. */
export function activityOf({ diagnostics, frames, calls }: ActivitySources): readonly DeviceActivity[] {
  return [...diagnostics.map(ofDiagnosis), ...ofFrames(frames, calls), ...calls.map(ofCall)].sort(
    (one, other) => (one.at < other.at ? 1 : -1),
  );
}

function ofDiagnosis(entry: Diagnosis): DeviceActivity {
  const { name, last_at, first_at, reason, topic, client_id } = entry;
  const title = diagnosisName(entry);
  return {
    key: ["diagnosis", name, reason, topic, client_id, first_at].join(" "),
    kind: isProblem(entry) ? "problem" : name === "connected" ? "connected" : "disconnected",
    at: last_at,
    title: title.charAt(0).toUpperCase() + title.slice(1),
    detail: diagnosisDetail(entry),
  };
}

function ofCall({ func, startedAt, tookMs, outcome }: PastCall): DeviceActivity {
  const answer = outcome.kind === "answered" ? JSON.stringify(outcome.result) : outcome.title;
  return {
    key: `call ${startedAt} ${func}`,
    kind: outcome.kind === "answered" ? "call" : "problem",
    at: new Date(startedAt).toISOString(),
    title: `Called ${func}`,
    detail: `${answer} in ${durationText(Math.round(tookMs))}`,
  };
}

function ofFrames(frames: readonly Notification[], calls: readonly PastCall[]): DeviceActivity[] {
  let before: Device | undefined;
  return frames.flatMap(({ seq, name, data, timestamp: at }): DeviceActivity[] => {
    const line = (kind: ActivityKind, title: string, detail = ""): DeviceActivity[] => [
      { key: `frame ${seq} ${name}`, kind, at, title, detail },
    ];
    if (name.startsWith("rpc.in.")) {
      const func = name.slice("rpc.in.".length);
      // Pages like this one ask for the list of functions.
      if (func === "RPC.List") return [];
      const isOwn = calls.some(
        (call) => call.func === func && Math.abs(call.startedAt - Date.parse(at)) < sameCallMs,
      );
      return isOwn ? [] : line("call", `Called ${func}`, data === null ? "" : JSON.stringify(data));
    }
    if (name.startsWith("rpc.out."))
      return line("event", `Event ${name.slice("rpc.out.".length)}`, JSON.stringify(data));
    if (name === "execution") {
      const execution = Execution.safeParse(data).data;
      if (execution === undefined || !hasEnded(execution)) return [];
      const detail = [actionText(execution.action), outcomeText(execution)].filter((text) => text !== "");
      const kind = execution.state === "succeeded" ? "change" : "problem";
      return line(kind, `Work ${stateText(execution)}`, detail.join(": "));
    }
    if (name === "alert") {
      const alert = Alert.safeParse(data).data;
      return alert === undefined ? [] : line("alert", `Alert ${alert.rule_name}`, alertOutcome(alert));
    }
    if (name === "created") return line("change", "Created");
    if (name !== "updated") return [];
    const device = Device.safeParse(data).data;
    if (device === undefined) return [];
    const { title, detail, isProgress = false } = changeBetween(before, device);
    before = device;
    return isProgress ? [] : line("change", title, detail);
  });
}

/** Where a device reports how much of a file it has: ten times in each update. */
const progressPointer = "/ota/percent";

interface ShadowChange extends Pick<DeviceActivity, "title" | "detail"> {
  /** Nothing changed but how much of a file the device has. */
  readonly isProgress?: boolean;
}

/** What an update changed, as far as the one before it is known. */
function changeBetween(before: Device | undefined, after: Device): ShadowChange {
  const version = `shadow version ${after.shadow.version}`;
  if (before === undefined) return { title: "Changed", detail: version };
  if (before.name !== after.name) return { title: "Name changed", detail: after.name ?? "none" };
  for (const section of ["desired", "reported"] as const) {
    const changes = leafChanges(
      before.shadow.state[section],
      after.shadow.state[section],
      before.shadow.state[section],
    );
    if (changes.length === 0) continue;
    const named = changes
      .slice(0, mostChanges)
      .map(
        ({ pointer, before: from, theirs: to }) =>
          `${pointer.slice(1).replaceAll("/", ".")} ${from ?? "–"} → ${to ?? "–"}`,
      );
    const more = changes.length - named.length;
    return {
      isProgress: changes.every(({ pointer }) => pointer === progressPointer),
      title: section === "desired" ? "Desired state changed" : "Reported state changed",
      detail: [...named, ...(more > 0 ? [`${more} more`] : [])].join(", "),
    };
  }
  return { title: "Changed", detail: version };
}
