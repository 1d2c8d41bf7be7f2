import type { Alert, AlertState } from "@devmesh/contracts/model/alert";
import type { Json } from "@devmesh/contracts/model/json";
import type { z } from "zod";

/** An alert as it is stored, or one that pends. Times are Unix milliseconds. */
export interface StoredAlert
  extends Pick<
    Alert,
    | "id"
    | "rule_id"
    | "rule_name"
    | "severity"
    | "device_id"
    | "cleared_why"
    | "flaps"
    | "acknowledged_by"
    | "note"
  > {
  /** `pending`: the condition holds, not yet for as long as the rule wants. */
  readonly state: z.output<typeof AlertState> | "pending";
  /** The epoch of the rule that it belongs to. */
  readonly epoch: number;
  readonly value: Json;
  readonly since: number;
  readonly fired_at: number | null;
  readonly cleared_at: number | null;
  readonly acknowledged_at: number | null;
  /** The last record that changed it; 0 for none. */
  readonly record: number;
  /** The first and the last state that nobody has been notified of yet. */
  readonly unsent: readonly z.output<typeof AlertState>[];
  /** A silence keeps what is unsent from being sent. */
  readonly held: boolean;
  /** When people were last notified of it. */
  readonly notified_at: number | null;
  /** Channels that were notified of all that is in `unsent`. */
  readonly sent_to: readonly string[];
  /** 0 for one that is not stored; each change increments it. */
  readonly revision: number;
}

/** How far the evaluation has come. */
export interface Progress {
  /** Position in the records; null while no rule reads them. */
  readonly cursor: string | null;
  /** The last event that was counted, as its sequence; null before the first. */
  readonly events: number | null;
  /** Until when the mesh was watched; Unix milliseconds. */
  readonly watched_at: number;
  /** Times in which the mesh could not see. */
  readonly blind: readonly (readonly [from: number, to: number])[];
  /** 0 for one that is not stored; each change increments it. */
  readonly revision: number;
}

/** A list of alerts that have fired, newest first. */
interface AlertListing {
  readonly state?: z.output<typeof AlertState> | undefined;
  readonly severity?: Alert["severity"] | undefined;
  readonly device_id?: string | undefined;
  readonly rule_id?: string | undefined;
  readonly after?: string;
  readonly limit: number;
}

/** Which alerts are listed or counted; what is absent has any value. */
export type AlertConditions = Omit<AlertListing, "after" | "limit">;

/** How many alerts of a rule fire. */
export interface FiringCount extends Pick<Alert, "rule_id" | "rule_name" | "severity"> {
  readonly firing: number;
  readonly unacknowledged: number;
}

/** A change that another one preceded; what was written of it is read again. */
export class StaleChange extends Error {
  override readonly name = "StaleChange";
}

/**
 * Alerts, at most one that pends or fires for each rule and device; after a death in a commit one that fires and one
 * that pends, of which the second one is to be removed.
 */
export interface AlertStore {
  /** The newest two rows of each rule and device. */
  findNewest(
    pairs: readonly Pick<StoredAlert, "rule_id" | "device_id">[],
    signal: AbortSignal,
  ): Promise<StoredAlert[]>;
  /** All that pend or fire, by id. */
  listOpen(
    page: { readonly after: string; readonly limit: number },
    signal: AbortSignal,
  ): Promise<StoredAlert[]>;
  findAlert(id: string, signal: AbortSignal): Promise<StoredAlert | null>;
  listAlerts(listing: AlertListing, signal: AbortSignal): Promise<StoredAlert[]>;
  countAlerts(selection: AlertConditions, signal: AbortSignal): Promise<number>;
  /** What fires, by rule and severity, in no order. */
  countFiring(signal: AbortSignal): Promise<FiringCount[]>;
  /**
   * Those with something that nobody has been notified of, the oldest first; without those that are held. Of a commit
   * of this process that is under way all or none, so that its alerts are sent together.
   */
  listUnsent(
    page: { readonly limit: number; readonly exceptRules?: readonly string[] },
    signal: AbortSignal,
  ): Promise<StoredAlert[]>;
  /** Those that are held, in no order. */
  listHeld(limit: number, signal: AbortSignal): Promise<StoredAlert[]>;
  /** Those of some rules that fire, that nobody has acknowledged, and that were last sent then or earlier. */
  listToRepeat(
    repeat: { readonly rule_ids: readonly string[]; readonly sentBefore: number; readonly limit: number },
    signal: AbortSignal,
  ): Promise<StoredAlert[]>;
  /**
   * Stores alerts with the next revision, removes others, and then moves the progress on. A process that dies in the
   * middle may have stored some alerts. @throws StaleChange when something has another revision than was read
   */
  commit(
    change: {
      readonly save: readonly StoredAlert[];
      readonly remove: readonly StoredAlert[];
      readonly progress?: Progress;
    },
    signal: AbortSignal,
  ): Promise<void>;
  readProgress(signal: AbortSignal): Promise<Progress | null>;
  /** Removes alerts that cleared before a time; returns how many. */
  removeCleared(before: number, limit: number, signal: AbortSignal): Promise<number>;
}

/** Of a rule and a device, for the key that one open alert has. */
export function pairOf({ rule_id, device_id }: Pick<StoredAlert, "rule_id" | "device_id">): string {
  return `${rule_id}/${device_id ?? ""}`;
}
