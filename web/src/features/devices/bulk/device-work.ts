import { queryKeys } from "../../../api/query-keys.ts";
import { useStreamed } from "../../../live/use-streamed.ts";
import type { DeviceOutcome } from "./for-each-device.ts";

/** What is done to each device. */
export interface DeviceJob {
  /** Heading of its progress, such as "Label 3 devices". */
  readonly name: string;
  readonly ids: readonly string[];
  /** Participle of the job, as in "3 of 5 deleted". */
  readonly done: string;
  readonly act: (id: string, signal: AbortSignal) => Promise<unknown>;
  /** Called when the job has finished or is cancelled. */
  readonly onEnd?: (outcomes: readonly DeviceOutcome[]) => void;
}

/** A job that was started, and its progress. */
export interface DeviceWork extends Pick<DeviceJob, "name" | "ids" | "done"> {
  /** The job itself, to be repeated. */
  readonly job: DeviceJob;
  /** Unique in the session. */
  readonly key: string;
  readonly state: "waiting" | "running" | "finished" | "cancelled";
  readonly outcomes: readonly DeviceOutcome[];
  readonly cancel: () => void;
}

export const noWork: readonly DeviceWork[] = [];

/** All work of the session that is not closed yet, in the order of its start. It outlasts the views that started it. */
export function useDeviceWork() {
  return useStreamed(queryKeys.deviceWork, noWork, Number.POSITIVE_INFINITY);
}
