import { Alert } from "@devmesh/contracts/model/alert";
import { DataRecord } from "@devmesh/contracts/model/data-record";
import { Device } from "@devmesh/contracts/model/device";
import { Diagnosis, diagnosisFrames } from "@devmesh/contracts/model/diagnostics";
import { Execution } from "@devmesh/contracts/model/execution";
import type { Notification } from "@devmesh/contracts/model/notification";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import { z } from "zod";
import type { StateLook } from "../../../components/state.tsx";
import { alertOutcome } from "../../alerts/alert-words.ts";
import { diagnosisDetail, diagnosisName } from "../shared/diagnosis-words.ts";
import { actionText, outcomeText, stateText } from "../shared/execution-words.ts";

/** One line of a device's log. */
export interface LogEntry {
  /** Ascends within the log. */
  readonly position: number;
  readonly frame: Notification;
}

/** Frames of a device, those of the last hour among them. */
export interface EventLog {
  /** Newest first. */
  readonly entries: readonly LogEntry[];
  /** Number of entries so far, including dropped ones. */
  readonly total: number;
}

/** Maximum of entries; the oldest are dropped. */
export const maxLogEntries = 500;

export const emptyLog: EventLog = { entries: [], total: 0 };

/** The log with frames of the device added, oldest first as they came, and those of `gap`, which concern all. */
export function withFrames(log: EventLog, deviceId: string, frames: readonly Notification[]): EventLog {
  const added = frames
    .filter(({ id, name }) => id === deviceId || name === "gap")
    .map((frame, at) => ({ position: log.total + at, frame }));
  if (added.length === 0) return log;
  return {
    entries: [...added.reverse(), ...log.entries].slice(0, maxLogEntries),
    total: log.total + added.length,
  };
}

/** The MQTT message of a frame: its topic, null for none, and its payload, or what a line can show of it. */
interface FrameMessage {
  readonly topic: string | null;
  readonly payload: string;
}

const DiagnosisName = z.enum(diagnosisFrames);

/** An entry of the diagnostics, in any frame that is one. */
const DiagnosisFrame = Diagnosis.extend({ name: DiagnosisName });

/** What happened, in words, and whether it is good or bad news. */
interface FrameWords {
  readonly words: string;
  readonly look: StateLook;
}

const wordsOfNames: Readonly<Record<string, FrameWords>> = {
  online: { words: "online", look: "good" },
  offline: { words: "offline", look: "idle" },
  created: { words: "created", look: "idle" },
  updated: { words: "changed", look: "idle" },
  deleted: { words: "deleted", look: "idle" },
  throttled: { words: "kept out", look: "bad" },
  execution: { words: "work", look: "info" },
  alert: { words: "alert", look: "warn" },
  data: { words: "record", look: "idle" },
  gap: { words: "events missing", look: "warn" },
};

/** The name of a frame in words; that of another release as it is. */
export function frameWords({ name }: Pick<Notification, "name">): FrameWords {
  if (name.startsWith("rpc.in.")) return { words: `called ${name.slice("rpc.in.".length)}`, look: "idle" };
  if (name.startsWith("rpc.out.")) return { words: `event ${name.slice("rpc.out.".length)}`, look: "info" };
  const problem = DiagnosisName.safeParse(name).data;
  if (problem !== undefined) return { words: diagnosisName({ name: problem }), look: "bad" };
  return wordsOfNames[name] ?? { words: name, look: "idle" };
}

/** What a line of the log shows of a frame, beside its name. */
export function messageOf({ id, name, data }: Notification): FrameMessage {
  if (id !== null && name.startsWith("rpc.in."))
    return { topic: deviceTopics.call(id), payload: data === null ? "" : inJson(data) };
  if (id !== null && name.startsWith("rpc.out."))
    return { topic: deviceTopics.event(id, name.slice("rpc.out.".length)), payload: inJson(data) };
  if (name === "data") {
    const record = DataRecord.safeParse(data).data;
    if (record !== undefined) return { topic: record.topic, payload: record.message };
  }
  if (name === "created" || name === "updated") {
    const shadow = Device.safeParse(data).data?.shadow;
    if (shadow !== undefined)
      return { topic: null, payload: `shadow version ${shadow.version} ${inJson(shadow.state)}` };
  }
  if (name === "execution") {
    const execution = Execution.safeParse(data).data;
    if (execution !== undefined) return { topic: null, payload: executionText(execution) };
  }
  if (name === "alert") {
    const alert = Alert.safeParse(data).data;
    if (alert !== undefined) return { topic: null, payload: `${alert.rule_name}: ${alertOutcome(alert)}` };
  }
  const diagnosis = DiagnosisFrame.safeParse({ ...Object(data), name }).data;
  if (diagnosis !== undefined) return { topic: null, payload: diagnosisDetail(diagnosis) };
  return { topic: null, payload: inJson(data) };
}

/** What was to be done, and what became of it: "Pump.Stop: waiting, until the device listens". */
function executionText(execution: Execution): string {
  const outcome = outcomeText(execution);
  const state = stateText(execution);
  return `${actionText(execution.action)}: ${outcome === "" ? state : `${state}, ${outcome}`}`;
}

/** Nothing for an empty object. */
function inJson(data: unknown): string {
  const text = JSON.stringify(data);
  return text === "{}" ? "" : text;
}
