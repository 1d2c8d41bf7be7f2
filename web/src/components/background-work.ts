import { queryKeys } from "../api/query-keys.ts";
import { useStreamed } from "../live/use-streamed.ts";

/** Something that goes on while other views are shown, and ends with the session. */
export interface BackgroundWork {
  /** Unique among all work. */
  readonly key: string;
  readonly title: string;
  readonly state: "running" | "done" | "failed" | "cancelled";
  /** How far it is: 0 to 1. */
  readonly share: number;
  /** How far it is and when it will end, or what became of it. */
  readonly text: string;
  readonly cancel: () => void;
  /** What can be done after its end. */
  readonly next?: readonly { readonly label: string; readonly run: () => void }[];
  /** What failed of it, by name. */
  readonly failures?: readonly { readonly name: string; readonly text: string }[];
}

const none: readonly BackgroundWork[] = [];

/** All work that is not closed yet, in the order of its start. */
export function useBackgroundWork() {
  return useStreamed(queryKeys.backgroundWork, none, Number.POSITIVE_INFINITY);
}
