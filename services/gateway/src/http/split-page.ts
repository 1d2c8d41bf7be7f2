/** A page taken apart without parsing its items. */
interface SplitPage {
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
