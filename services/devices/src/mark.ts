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
  /** MQTT client ids it ever logged in with, as far as known. */
  readonly client_ids: readonly string[];
}

/** The token is being replaced; connections made with the old one are still to be closed. The device is seen as ever. */
export interface RotatingMark extends Claim {
  readonly kind: "rotating";
}

/** The clean-up of a deleted device, in this order; each step may be done twice. */
export const deletionSteps = ["revoke", "close_again", "wipe", "purge", "admit", "forget", "remove"] as const;
export type DeletionStep = (typeof deletionSteps)[number];
