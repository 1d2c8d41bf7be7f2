import type { Device } from "@devmesh/contracts/model/device";
import type { SavedView } from "@devmesh/contracts/model/saved-view";
import type { OperationKind, PendingOperation } from "../pending-operation.ts";
import type { StoredShadow } from "../shadow/stored-shadow.ts";
import type { BoardStore } from "./board-store.ts";
import type { FacetCount } from "./facet-count.ts";
import type { ListOrder } from "./list-order.ts";

/** The public members of a device that are stored as they are written. */
type WrittenMembers = Readonly<Omit<Device, "online" | "last_seen" | "created_at" | "shadow">>;

/** What its owner writes of a device. */
export interface DeviceDocument extends WrittenMembers {
  readonly shadow: StoredShadow;
}

/** A device that is yet to be stored. */
export interface NewDeviceDocument extends DeviceDocument {
  /** Unix ms. */
  readonly created_at: number;
}

/** A device as it is stored. */
export interface StoredDevice extends NewDeviceDocument {
  /** 1 at the creation; each `replace` increments it. Presence and operations do not. */
  readonly revision: number;
  /** Place in the order of creation: unlike that of any other device, also one of the same id. Of `A-Za-z0-9._-`. */
  readonly position: string;
  /** Unix ms; null before the first connection. */
  readonly last_seen: number | null;
}

/** A device in a list, without its document. */
export interface ListedDevice extends Pick<StoredDevice, "id" | "created_at"> {
  /** Where a list in the asked order goes on. */
  readonly cursor: string;
  /** Null for none. */
  readonly version: string | null;
  readonly labels: readonly string[];
}

/** What a device must be like; it must meet all members. Texts are case-sensitive. */
export interface StoredCondition {
  /** Each is a part of its id, its name or a label. */
  readonly words?: readonly string[];
  readonly noWords?: readonly string[];
  readonly labels?: readonly string[];
  readonly noLabels?: readonly string[];
  /** One of them is its version; null for none. */
  readonly versions?: readonly (string | null)[];
  readonly noVersions?: readonly (string | null)[];
  /** Its last recorded presence. */
  readonly online?: boolean;
  /** It is recorded as offline, and was last seen, or else created, before; Unix ms. */
  readonly silentSince?: number;
  /** The opposite of `silentSince`. */
  readonly seenSince?: number;
  readonly ids?: readonly string[];
  readonly noIds?: readonly string[];
  /** Each is a part of its shadow as compact JSON: the store reads documents. */
  readonly contained?: readonly string[];
}

/** A condition that a store decides without documents. */
export type CountedCondition = Omit<StoredCondition, "contained">;

/** What is being listed. */
interface DeviceListing extends ListOrder {
  /** Only devices after this one in that order, a cursor of a listed device or a position; it may be deleted. */
  readonly after?: string;
  /** Default: all devices. */
  readonly condition?: StoredCondition;
  /** At least 1. */
  readonly limit: number;
}

/** A change of a device's presence. */
export interface PresenceReport {
  readonly id: string;
  /** The last published state. */
  readonly online: boolean;
  /** Unix ms; never replaces a later time. */
  readonly seen_at: number;
}

/** The visible devices that report one version of the firmware. */
export interface FirmwareCount {
  /** Null for none. */
  readonly version: string | null;
  readonly devices: number;
  readonly online: number;
  /** How many of them are offline since before each of the times asked for. */
  readonly silent: readonly number[];
}

/** A device and its pending operation. */
export interface DeviceOperation {
  readonly id: string;
  readonly operation: PendingOperation;
}

/** All saved views, which are one document. */
export interface SavedViews {
  /** 0 before the first change; each `replaceViews` increments it. */
  readonly revision: number;
  readonly views: readonly SavedView[];
}

/**
 * Devices as documents, the saved views of their list, and boards. The port requires of a database only unique ids and
 * compare-and-set on one document. A pending creation or deletion hides a device from all methods but those about
 * operations. Writes are durable when they resolve, except presence.
 */
export interface DeviceStore extends BoardStore {
  /** Whether this process alone writes: every operation found at its start was then left by a crash. */
  readonly exclusive: boolean;
  /** Stores a new device with its operation; `exists` also for a hidden device that is being created. */
  insert(
    device: NewDeviceDocument,
    operation: PendingOperation | null,
    signal: AbortSignal,
  ): Promise<"inserted" | "exists" | "being_deleted">;
  /** Null when there is none or it is hidden. */
  find(id: string, signal: AbortSignal): Promise<StoredDevice | null>;
  /** Whether `find` would find it, without reading its document. */
  has(id: string, signal: AbortSignal): Promise<boolean>;
  /** The labels of a device, also of a hidden one; none where there is no such device. */
  labelsOf(id: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Replaces the document of a visible device at this revision; false when there is none. */
  replace(device: DeviceDocument, revision: number, signal: AbortSignal): Promise<boolean>;
  /**
   * Visible devices in an order; null when `after` is no cursor of it. Other calls get their turn while it reads
   * documents.
   */
  list(listing: DeviceListing, signal: AbortSignal): Promise<ListedDevice[] | null>;
  /** How many visible devices meet a condition. */
  count(condition: CountedCondition, signal: AbortSignal): Promise<number>;
  /** Counts the visible devices that meet a condition by their version or label. */
  countBy(facet: "version" | "label", condition: CountedCondition, signal: AbortSignal): Promise<FacetCount>;
  /** Visible devices by firmware, in any order; `times`, Unix ms, as many as `silentHours`. */
  countByFirmware(times: readonly number[], signal: AbortSignal): Promise<FirmwareCount[]>;
  /** The visible devices of these ids, in any order. */
  findAll(ids: readonly string[], signal: AbortSignal): Promise<StoredDevice[]>;
  /** Ignores devices that do not exist. A crash soon after may lose it. */
  recordPresence(reports: readonly PresenceReport[], signal: AbortSignal): Promise<void>;
  /** Ids of the devices last recorded as online. */
  listOnline(signal: AbortSignal): Promise<string[]>;
  /** Sets the operation of a device whose current one is of a kind in `from` (null: none); false otherwise. */
  beginOperation(
    id: string,
    from: readonly (OperationKind | null)[],
    operation: PendingOperation,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Replaces, or with null ends, the operation that holds `token`; false when the device has another. */
  replaceOperation(
    id: string,
    token: string,
    operation: PendingOperation | null,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Removes the device whose operation holds `token`; false when there is none. */
  remove(id: string, token: string, signal: AbortSignal): Promise<boolean>;
  listOperations(signal: AbortSignal): Promise<DeviceOperation[]>;
  readViews(signal: AbortSignal): Promise<SavedViews>;
  /** Replaces all views at this revision; false when they have another. */
  replaceViews(changed: SavedViews, signal: AbortSignal): Promise<boolean>;
  /** Resolves when the store can be read now. */
  ping(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
