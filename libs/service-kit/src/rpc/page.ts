import { isSortableId } from "../sortable-id.ts";

/** Largest reply that is sent, in bytes (ADR 19); the broker's `max_payload` is twice that. */
export const MAX_REPLY_BYTES = 512 * 1024;

/** A page of a list, as `pageOf` of the contracts describes it. */
export interface Page<T> {
  readonly next: string | null;
  readonly items: T[];
}

/** How a page is cut out of candidates. */
export interface CutOptions<T> {
  readonly limit: number;
  /** Cursor of the page after this item. */
  readonly cursorOf: (item: T) => string;
  /** Whether the store has more items than the candidates. Default false. */
  readonly more?: boolean;
  /** Bytes of an item as JSON. Default: measured by encoding it. */
  readonly sizeOf?: (item: T) => number;
  /** Most bytes of the page as JSON. Default: the largest reply that is sent. */
  readonly maxBytes?: number;
}

/**
 * Cuts the first page by count and by bytes (ADR 19); it has at least one item. Ask the store for `limit` + 1
 * candidates, or set `more`.
 */
export function cutPage<T>(candidates: readonly T[], options: CutOptions<T>): Page<T> {
  const { limit, cursorOf, more = false, sizeOf = jsonBytes, maxBytes = MAX_REPLY_BYTES } = options;
  const items: T[] = [];
  // `{"next":"…","items":[…]}` around the items; cursors are short.
  let bytes = 1_024;
  for (const item of candidates) {
    if (items.length === limit) break;
    bytes += sizeOf(item) + 1;
    if (bytes > maxBytes && items.length > 0) break;
    items.push(item);
  }
  const last = items.at(-1);
  const complete = items.length === candidates.length && !more;
  return { next: complete || last === undefined ? null : cursorOf(last), items };
}

/** How a page of a list is made whose cursors are its ids. */
export interface PageByIdOptions<Stored, Shown> {
  /** Items of a page, unless the caller wants fewer. */
  readonly most: number;
  /** Reads so many stored items after an id, in the order of the list. */
  readonly read: (page: { readonly after?: string; readonly limit: number }) => Promise<readonly Stored[]>;
  readonly describe: (stored: Stored) => Shown;
  /** Ends the call where `after` is no id. */
  readonly refuse: () => never;
}

/** A page of a list whose cursors are the sortable ids of its items. */
export async function pageById<Stored, Shown extends { readonly id: string }>(
  {
    after,
    limit = Number.POSITIVE_INFINITY,
  }: { readonly after?: string | undefined; readonly limit?: number | undefined },
  { most, read, describe, refuse }: PageByIdOptions<Stored, Shown>,
): Promise<Page<Shown>> {
  if (after !== undefined && !isSortableId(after)) refuse();
  const wanted = Math.min(limit, most);
  const found = await read({ limit: wanted + 1, ...(after !== undefined && { after }) });
  return cutPage(found.map(describe), { limit: wanted, cursorOf: ({ id }) => id });
}

function jsonBytes(item: unknown): number {
  return Buffer.byteLength(JSON.stringify(item) ?? "null");
}
