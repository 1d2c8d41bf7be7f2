/**
 * What is left to do for a device, stored with it so that it survives a crash. A device has at most one operation,
 * under a lease: `token` changes by compare-and-set, and after `claimed_until` (Unix ms) anyone may take it.
 */
export type PendingOperation = PendingCreation | PendingDeletion | PendingRotation;
export type OperationKind = PendingOperation["kind"];

interface Lease {
  readonly token: string;
  readonly claimed_until: number;
}

/** The device has no credentials yet and is hidden. */
export interface PendingCreation extends Lease {
  readonly kind: "creating";
}

/** The device is hidden for good; its id is refused until the clean-up ends. */
export interface PendingDeletion extends Lease {
  readonly kind: "deleting";
  /** The next step; all before it are done. */
  readonly step: DeletionStep;
  /** Id of the event `deleted`: a crash may have it published twice. */
  readonly event_id: string;
  /** A receiver of webhooks deleted it: webhooks get no event of it. */
  readonly from_webhook?: true;
  /** MQTT client ids that it logged in with, as far as known. */
  readonly client_ids: readonly string[];
}

/** The token is being replaced; connections made with the old one must be closed. The device stays visible. */
export interface PendingRotation extends Lease {
  readonly kind: "rotating";
}

/** The idempotent steps of a deletion, each with the next one. */
export const nextStep = {
  revoke: "close_again",
  close_again: "drop_work",
  drop_work: "wipe",
  wipe: "admit",
  admit: "forget",
  forget: "remove",
  remove: null,
} as const;
export type DeletionStep = keyof typeof nextStep;
