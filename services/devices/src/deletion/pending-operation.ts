/**
 * What is left to do for a device, kept with it so that it is done after a crash too. A device has one mark at most.
 * Whoever works on a mark holds a claim on it: `token` is theirs alone and changes hands by compare-and-set, and when
 * `claimed_until` (Unix ms) has passed anyone may take the work over.
 */
export type Mark = CreatingMark | DeletingMark | RotatingMark;
export type MarkKind = Mark["kind"];

interface Claim {
  readonly token: string;
  readonly claimed_until: number;
}

/** The device has no credentials yet and is not seen by anyone. */
export interface CreatingMark extends Claim {
  readonly kind: "creating";
}

/** The device is gone for everyone; its id is refused until the clean-up is through. */
export interface DeletingMark extends Claim {
  readonly kind: "deleting";
  /** What is to be done next; all before it is done. */
  readonly step: DeletionStep;
  /** Id of the event `deleted`, the same when a crash has it published twice. */
  readonly event_id: string;
  /** MQTT client ids it ever logged in with, as far as known. */
  readonly client_ids: readonly string[];
}

/**
 * The token is being replaced; connections made with the old one are still to be closed. The device is seen as ever.
 */
export interface RotatingMark extends Claim {
  readonly kind: "rotating";
}

/**
 * The clean-up of a deleted device: each step, which may be done twice, and the next one. `purge` comes only in marks
 * of an earlier release, whose `wipe` did not purge.
 */
export const nextStep = {
  revoke: "close_again",
  close_again: "wipe",
  wipe: "admit",
  purge: "admit",
  admit: "forget",
  forget: "remove",
  remove: null,
} as const;
export type DeletionStep = keyof typeof nextStep;
