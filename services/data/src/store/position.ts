import { z } from "zod";
import { InvalidCursor, type RecordPageRequest } from "./data-store.ts";

/** Reads on in the requested order. */
export interface ReadPosition {
  readonly kind: "read";
  /** The id after which it goes on; null at the beginning. */
  readonly at: number | null;
  /** Matching records still to skip. */
  readonly skip: number;
  /** The records that may still follow with a negative `skip`; null without one. */
  readonly remaining: number | null;
  /** Whether the request had a `skip`: then its cursors hold the rest of it. */
  readonly skipped: boolean;
}

/** Counts back from the end of the order, for a negative `skip`. */
export interface SeekPosition {
  readonly kind: "seek";
  /** The id before which it goes on; null at the end. */
  readonly at: number | null;
  /** Matching records counted so far. */
  readonly found: number;
  /** `|skip|`. */
  readonly wanted: number;
}

/** The state of a query between two scans. */
export type Position = ReadPosition | SeekPosition;

/** Where a page begins. @throws InvalidCursor */
export function startOf({ after, skip }: Pick<RecordPageRequest, "after" | "skip">): Position {
  if (after === undefined) {
    if (skip < 0) return { kind: "seek", at: null, found: 0, wanted: -skip };
    return { kind: "read", at: null, skip, remaining: null, skipped: skip > 0 };
  }
  if (/^\d{1,15}$/.test(after)) {
    if (skip < 0) throw new InvalidCursor("a record id does not go with a negative skip");
    return { kind: "read", at: Number(after), skip, remaining: null, skipped: skip > 0 };
  }
  const fields = after.split("_");
  const read = ReadFields.safeParse(fields);
  if (read.success) {
    const [, at, left, remaining] = read.data;
    return { kind: "read", at, skip: left ?? 0, remaining, skipped: true };
  }
  const seek = SeekFields.safeParse(fields);
  if (!seek.success) throw new InvalidCursor("neither a record id nor a cursor");
  const [, at, found, wanted] = seek.data;
  return { kind: "seek", at, found: found ?? 0, wanted: wanted ?? 0 };
}

/** The cursor of a position: just the record id where that is enough. */
export function cursorOf(position: Position): string {
  if (position.kind === "seek") return ["s", position.at ?? "", position.found, position.wanted].join("_");
  if (position.at !== null && !position.skipped) return String(position.at);
  return ["r", position.at ?? "", position.skip, position.remaining ?? ""].join("_");
}

const Count = z
  .string()
  .regex(/^\d{0,15}$/)
  .transform((text) => (text === "" ? null : Number(text)));
const ReadFields = z.tuple([z.literal("r"), Count, Count, Count]);
const SeekFields = z.tuple([z.literal("s"), Count, Count, Count]);
