import type { Firmware } from "@devmesh/contracts/model/firmware";

/** Firmware as it is stored. Times are Unix milliseconds. */
export interface StoredFirmware extends Omit<Firmware, "ready" | "created_at"> {
  readonly created_at: number;
  /** The upload that is its content; null before there is one. It never changes then. */
  readonly content: string | null;
}

/** One attempt to send a content: its pieces are kept below its id. */
export interface FirmwareUpload {
  readonly id: string;
  readonly firmware_id: string;
  /** Bytes that it may have; 0 once it was given up. */
  readonly size: number;
  readonly begun_at: number;
}

/** Part of a list. */
interface FirmwarePage {
  readonly after?: string;
  readonly limit: number;
}

/**
 * Firmware and the pieces of its content. The port requires of a database unique keys and compare-and-set on one
 * document. Writes are durable when they resolve. Ids of firmware ascend with the time of creation.
 */
export interface FirmwareStore {
  /** Stores new firmware, unless there are `most`, or another has its name and version. */
  insert(firmware: StoredFirmware, most: number, signal: AbortSignal): Promise<"stored" | "full" | "exists">;
  find(id: string, signal: AbortSignal): Promise<StoredFirmware | null>;
  /** Newest first; `after` is the id of the last one before. */
  list(page: FirmwarePage, signal: AbortSignal): Promise<StoredFirmware[]>;
  /** Makes an upload, of this MD5, the content of firmware that has none; false where it has one, or is gone. */
  setContent(id: string, upload: string, md5: string, signal: AbortSignal): Promise<boolean>;
  /** Stores the MD5 of a content that was stored without. */
  setMd5(id: string, md5: string, signal: AbortSignal): Promise<void>;
  /** Removes firmware, not its uploads; returns it as it was, null where there was none. */
  remove(id: string, signal: AbortSignal): Promise<StoredFirmware | null>;

  /** Stores an upload unless there is one of its id; false where all would have more than `maxBytes` together. */
  insertUpload(upload: FirmwareUpload, maxBytes: number, signal: AbortSignal): Promise<boolean>;
  findUpload(id: string, signal: AbortSignal): Promise<FirmwareUpload | null>;
  /** Uploads that began before a time, in the order of their ids. */
  listUploads(begunBefore: number, page: FirmwarePage, signal: AbortSignal): Promise<FirmwareUpload[]>;
  /** Bytes of all uploads. */
  sumUploads(signal: AbortSignal): Promise<number>;
  putPiece(upload: string, number: number, data: Uint8Array, signal: AbortSignal): Promise<void>;
  readPiece(upload: string, number: number, signal: AbortSignal): Promise<Uint8Array | null>;
  /** Removes the pieces of an upload and sets its size to 0: a piece may still be on its way. */
  emptyUpload(id: string, signal: AbortSignal): Promise<void>;
  /** Removes an upload with its pieces. */
  removeUpload(id: string, signal: AbortSignal): Promise<void>;
  /** Corrects what limits count after a death of a replica; to be called about once a minute. */
  correctCounts(signal: AbortSignal): Promise<void>;
}
