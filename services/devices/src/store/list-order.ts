/** What devices are ordered by; those of one value in the order of their creation, those without one first. */
export interface ListOrder {
  /** Default: their creation. */
  readonly by?: OrderedMember;
  /** The reverse of all that. */
  readonly descending?: boolean;
}

/** Members that are not unique, so that a cursor has the position beside the value. */
type OrderedMember = "version" | "last_seen";

type OrderedValue = string | number | null;

/** Where a list in an order goes on. */
export interface ListPlace {
  /** Undefined in the order of creation. */
  readonly value?: OrderedValue;
  readonly position: number;
}

/** Cursor of what follows a device in an order; of `A-Za-z0-9_-`. */
export function cursorOf({ value, position }: ListPlace): string {
  if (value === undefined) return String(position);
  return Buffer.from(JSON.stringify([position, value])).toString("base64url");
}

/** The place that a cursor of a list in this order names; null where it is none. */
export function placeOf(cursor: string, by: ListOrder["by"]): ListPlace | null {
  if (by === undefined) return /^\d{1,15}$/.test(cursor) ? { position: Number(cursor) } : null;
  const [position, value]: unknown[] = valuesOf(cursor);
  const isOfOrder = value === null || typeof value === (by === "version" ? "string" : "number");
  if (typeof position !== "number" || !Number.isSafeInteger(position) || !isOfOrder) return null;
  return { position, value: value as OrderedValue };
}

function valuesOf(cursor: string): unknown[] {
  try {
    const decoded: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return Array.isArray(decoded) ? decoded : [];
  } catch {
    return [];
  }
}

/** Devices that an index finds in the order of a list: those of one value after a position, or those of many values. */
export type OrderedRange =
  | { readonly value: OrderedValue; readonly after: number | null }
  | { readonly beyond: string | number | null };

/**
 * What follows a place, or all, as ranges in the order of the list. `beyond`: the values above it, or below it where
 * the order descends; null for each value.
 */
export function rangesAfter(place: ListPlace | null, descending: boolean): OrderedRange[] {
  const withoutValue = { value: null, after: null };
  if (place === null) return descending ? [{ beyond: null }, withoutValue] : [withoutValue, { beyond: null }];
  const { value = null, position } = place;
  const equal = { value, after: position };
  if (value === null) return descending ? [equal] : [equal, { beyond: null }];
  return descending ? [equal, { beyond: value }, withoutValue] : [equal, { beyond: value }];
}
