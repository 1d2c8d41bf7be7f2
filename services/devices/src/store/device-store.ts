import type { Acl } from "@devmesh/contracts/model/acl";
import type { Mark, MarkKind } from "../deletion/pending-operation.ts";
import type { StoredShadow } from "../shadow/stored-shadow.ts";

/** What its owner writes of a device. */
export interface DeviceDocument {
  readonly id: string;
  readonly name: string | null;
  readonly acl: Acl;
  readonly shadow: StoredShadow;
}

/** A device that is yet to be stored. */
export interface NewDeviceDocument extends DeviceDocument {
  /** Unix ms. */
  readonly created_at: number;
}

/** A device as it is stored. */
export interface StoredDevice extends NewDeviceDocument {
  /** 1 at the creation; each `replace` steps it. Presence and marks do not. */
  readonly revision: number;
  /** Place in the order of creation: unlike that of any other device, also one of the same id. Of `A-Za-z0-9._-`. */
  readonly position: string;
  /** Unix ms; null before the first connection. */
  readonly last_seen: number | null;
}

/** A device in a list, without its document. */
export type ListedDevice = Pick<StoredDevice, "id" | "position">;

/** What is being listed. */
interface DeviceListing {
  /** Only devices behind this position. It may be that of a device which is gone. */
  readonly after?: string;
  /** Only devices with this substring, case-sensitive, in id, name or a label. */
  readonly filter?: string;
  /** The most that is answered, at least 1. */
  readonly limit: number;
}

/** What has become known about a device's connections. */
export interface PresenceReport {
  readonly id: string;
  /** What was last told about it, `online` or `offline`. */
  readonly online: boolean;
  /** Unix ms; an earlier time than the stored one changes nothing. */
  readonly seen_at: number;
}

/** A device on which work was begun and not ended. */
export interface MarkedDevice {
  readonly id: string;
  readonly mark: Mark;
}

/**
 * Devices as documents. It may assume of a database no more than unique ids and an atomic compare-and-set on one
 * document: neither transactions nor change streams. A device marked `creating` or `deleting` is hidden: only the
 * methods about marks know it. A write has reached the disk when its promise resolves, except that of presence.
 */
export interface DeviceStore {
  /** Whether this process alone writes it, so that every mark found at its start was left over by a crash. */
  readonly exclusive: boolean;
  /** Stores a new device with its mark; nothing when there is one of that id, hidden or not, whose mark then tells. */
  insert(device: NewDeviceDocument, mark: Mark | null, signal: AbortSignal): Promise<InsertOutcome>;
  /** The device of that id; null when there is none or it is hidden. */
  find(id: string, signal: AbortSignal): Promise<StoredDevice | null>;
  /** Whether `find` would find it, without reading its document. */
  has(id: string, signal: AbortSignal): Promise<boolean>;
  /** Replaces the document if it still has that revision and is not hidden; answers whether it did. */
  replace(device: DeviceDocument, revision: number, signal: AbortSignal): Promise<boolean>;
  /** Devices in the order of their creation, those not hidden; null when `after` is not a position. */
  list(listing: DeviceListing, signal: AbortSignal): Promise<ListedDevice[] | null>;
  /** The devices of these ids that exist and are not hidden, in any order. */
  findAll(ids: readonly string[], signal: AbortSignal): Promise<StoredDevice[]>;
  /** Takes in what became known about presence, of devices that exist. A crash soon after may lose it. */
  recordPresence(reports: readonly PresenceReport[], signal: AbortSignal): Promise<void>;
  /** Ids of the devices last recorded as online. */
  listOnline(signal: AbortSignal): Promise<string[]>;
  /** Marks a device whose mark is now one of `from` (null: it has none); answers whether it did. */
  mark(id: string, from: readonly (MarkKind | null)[], mark: Mark, signal: AbortSignal): Promise<boolean>;
  /** Replaces, or with null clears, the mark that holds `token`; false when that is no longer the device's mark. */
  replaceMark(id: string, token: string, mark: Mark | null, signal: AbortSignal): Promise<boolean>;
  /** Removes the device whose mark holds `token`; false when that is no longer the device's mark. */
  remove(id: string, token: string, signal: AbortSignal): Promise<boolean>;
  /** Every marked device. */
  listMarked(signal: AbortSignal): Promise<MarkedDevice[]>;
  /** Resolves when the store can be read now. */
  ping(signal: AbortSignal): Promise<void>;
  /** Ends the work under way and lets go of the database. */
  close(): Promise<void>;
}

/** What came of an insertion; `exists` also for a device that is marked `creating`. */
type InsertOutcome = "inserted" | "exists" | "being_deleted";
