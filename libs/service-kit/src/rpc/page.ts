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

function jsonBytes(item: unknown): number {
  return Buffer.byteLength(JSON.stringify(item) ?? "null");
}

/** A page taken apart without parsing its items. */
export interface SplitPage {
  readonly next: string | null;
  /** Content of the array `items`: JSON values with commas between. */
  readonly items: Uint8Array;
}

const opening = Buffer.from('{"next":');
const between = Buffer.from(',"items":[');
const closing = Buffer.from("]}");

/** Splits a `pageOf` reply so that its items can be passed on as bytes (ADR 19). Throws unless `next` comes first. */
export function splitPage(bytes: Uint8Array): SplitPage {
  const page = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!page.subarray(0, opening.length).equals(opening)) throw new Error("a page does not begin with `next`");
  const nextEnds = endOfNext(page);
  const itemsBegin = nextEnds + between.length;
  if (!page.subarray(nextEnds, itemsBegin).equals(between)) throw new Error("`items` does not follow `next`");
  const itemsEnd = page.length - closing.length;
  if (itemsEnd < itemsBegin || !page.subarray(itemsEnd).equals(closing))
    throw new Error("a page does not end with `items`");
  const next: unknown = JSON.parse(page.toString("utf8", opening.length, nextEnds));
  if (next !== null && typeof next !== "string") throw new Error("`next` is neither a string nor null");
  return { next, items: page.subarray(itemsBegin, itemsEnd) };
}

/** Index after the JSON value of `next`: `null` or a string. */
function endOfNext(page: Buffer): number {
  const quote = 0x22;
  const backslash = 0x5c;
  if (page[opening.length] !== quote) return opening.length + "null".length;
  for (let at = opening.length + 1; at < page.length; at++) {
    if (page[at] === backslash) at++;
    else if (page[at] === quote) return at + 1;
  }
  throw new Error("`next` does not end");
}
