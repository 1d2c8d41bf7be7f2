import { splitPage } from "@devmesh/service-kit/page";
import { countItems } from "./json-items.ts";
import { json, type Reply, stream } from "./reply.ts";

/** Where a page of a list begins and how much of it is wanted. */
export interface PageRequest {
  /** Items still wanted; undefined for all. */
  readonly limit: number | undefined;
  /** Cursor of the page before; undefined for the first page. */
  readonly after: string | undefined;
}

/** Fetches one page as its owner sent it: `{"next":…,"items":[…]}`. */
export type FetchPage = (request: PageRequest) => Promise<Uint8Array>;

/** One page of a list, its items unparsed. */
export interface ListPage {
  /** JSON values with commas between. */
  readonly items: Uint8Array;
  /** Cursor of what follows; null at the end of the list. */
  readonly next: string | null;
  /** Whether no page follows: the list ends here, or as many items as were wanted have come. */
  readonly last: boolean;
}

/** Pages of a list in their order; the last one says so. */
export type ListPages = AsyncGenerator<ListPage, void, undefined>;

/** The pages of a list, each fetched when the one before has been taken, until `limit` items or the end. */
export async function* pagesOf(fetch: FetchPage, limit: number | undefined, after?: string): ListPages {
  let cursor = after;
  let wanted = limit;
  for (;;) {
    const { items, next } = splitPage(await fetch({ limit: wanted, after: cursor }));
    // Counting is only needed where the list goes on.
    if (next !== null && wanted !== undefined) wanted -= countItems(items);
    const last = next === null || (wanted !== undefined && wanted <= 0);
    yield { items, next, last };
    if (last) return;
    // A cursor that leads back to itself would never end.
    if (next === cursor) throw new Error("a list does not go on behind its cursor");
    cursor = next;
  }
}

const opening = Buffer.from("[");
const separator = Buffer.from(",");
const closing = Buffer.from("]");

/** All pages as one JSON array: whole where there is one page, else streamed, holding one page at a time. */
export async function jsonArray(pages: ListPages): Promise<Reply> {
  const first = await pages.next();
  if (first.done) return json("[]");
  const { items, last } = first.value;
  if (last) return json(Buffer.concat([opening, items, closing]));
  return stream("application/json", arrayChunks(items, pages));
}

/** Pages that are held already, as one JSON array. */
export function joinPages(pages: readonly ListPage[]): Uint8Array {
  const filled = pages.filter(({ items }) => items.length > 0);
  const parts = filled.flatMap(({ items }, at) => (at === 0 ? [items] : [separator, items]));
  return Buffer.concat([opening, ...parts, closing]);
}

async function* arrayChunks(first: Uint8Array, rest: ListPages): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.concat([opening, first]);
  let empty = first.length === 0;
  for await (const { items } of rest) {
    if (items.length === 0) continue;
    yield empty ? items : Buffer.concat([separator, items]);
    empty = false;
  }
  yield closing;
}
