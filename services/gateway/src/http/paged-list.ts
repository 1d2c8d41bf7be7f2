import { type CallContext, createCallContext, untilAborted } from "@devmesh/service-kit/rpc/context";
import type { Semaphore } from "@devmesh/service-kit/semaphore";
import { withTag } from "./conditional.ts";
import { json, type Reply, stream, type Within } from "./exchange.ts";
import { countItems } from "./json-bytes.ts";
import { splitPage } from "./split-page.ts";

export interface PageRequest {
  /** Items still wanted; absent for all. */
  readonly limit?: number;
  /** `next` of the page before; absent for the first page. */
  readonly after?: string;
}

/** One page of a list, its items unparsed. */
export interface ListPage {
  /** JSON values with commas between. */
  readonly items: Uint8Array;
  /** Cursor of what follows; null at the end of the list. */
  readonly next: string | null;
  /** Whether the list ends here or `limit` is reached. */
  readonly last: boolean;
}

export type ListPages = AsyncGenerator<ListPage, void, undefined>;

/**
 * The pages of a list up to `limit` items, each fetched when the one before has been taken. `fetch` returns a page as
 * its owner sent it: `{"next":…,"items":[…]}`.
 */
export async function* pagesOf(
  fetch: (request: PageRequest) => Promise<Uint8Array>,
  limit: number | undefined,
  after?: string,
): ListPages {
  let cursor = after;
  let wanted = limit;
  for (;;) {
    const { items, next } = splitPage(await fetch(pageRequest(wanted, cursor)));
    if (next !== null && wanted !== undefined) wanted -= countItems(items);
    const last = next === null || (wanted !== undefined && wanted <= 0);
    yield { items, next, last };
    if (last) return;
    if (next === cursor) throw new Error("the cursor of a list does not advance");
    cursor = next;
  }
}

function pageRequest(limit: number | undefined, after: string | undefined): PageRequest {
  return { ...(limit !== undefined && { limit }), ...(after !== undefined && { after }) };
}

const opening = Buffer.from("[");
const separator = Buffer.from(",");
const closing = Buffer.from("]");

/**
 * All pages as one JSON array, streamed where there are several, holding one page at a time. `headersOf` the first page
 * are added.
 */
export async function jsonArray(
  pages: ListPages,
  headersOf: (first: ListPage) => Promise<Reply["headers"]> = async () => ({}),
): Promise<Reply> {
  const first = await pages.next();
  if (first.done) return json("[]");
  const { items, last } = first.value;
  const headers = await headersOf(first.value);
  if (last) return json(Buffer.concat([opening, items, closing]), { headers });
  return stream("application/json", arrayChunks(items, pages), headers);
}

/** A list as a client asked for it. */
export interface AskedList {
  readonly path: string;
  /** What its query selects; repeated in links, but for the position. */
  readonly query: Readonly<Record<string, unknown>>;
}

/** The header that leads to what follows a cursor; none at the end. It never holds a key. */
export function linkHeader({ path, query }: AskedList, cursor: string | null): Reply["headers"] {
  if (cursor === null) return {};
  const { after: _after, skip: _skip, ...selection } = query;
  const following = new URLSearchParams();
  for (const [name, value] of Object.entries(selection))
    if (value !== undefined) following.set(name, String(value));
  following.set("after", cursor);
  return { Link: `<${path}?${following}>; rel="next"` };
}

/** Most bytes held for the `Link` of a page; a longer page ends early. */
const heldBytes = 8 * 1024 * 1024;

/** Pages as one JSON array with a `Link` to what follows. */
async function linkedArray(pages: ListPages, asked: AskedList): Promise<Reply> {
  const held: ListPage[] = [];
  let bytes = 0;
  for await (const page of pages) {
    held.push(page);
    bytes += page.items.length;
    if (bytes >= heldBytes) break;
  }
  return json(joinPages(held), { headers: linkHeader(asked, held.at(-1)?.next ?? null) });
}

function joinPages(pages: readonly ListPage[]): Uint8Array {
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

/** Timeout for one page of a list, in milliseconds. */
const pageMs = 5_000;

interface ListRequest {
  readonly query: { readonly limit?: number | undefined; readonly after?: string | undefined };
  readonly within: Within;
  /** Bounds the pages that are read at one time; those of a client that goes away meanwhile are not read. */
  readonly turns?: Semaphore;
}

/** A permit, unless `signal` aborts before it comes. */
async function takeTurn(turns: Semaphore, signal: AbortSignal): Promise<Disposable | null> {
  const turn = turns.acquire();
  try {
    return await untilAborted(signal, () => turn);
  } catch (error) {
    void turn.then((late) => late?.[Symbol.dispose]());
    throw error;
  }
}

/**
 * A list whole, or with `limit` a page of it that leads on, with the total if `count` is given. Where nobody can count,
 * such as an earlier release of the owner, the total is absent. A whole list that is one page is its own count.
 */
export async function answerList(
  fetch: (page: PageRequest, call: CallContext) => Promise<Uint8Array>,
  path: string,
  { query, within, turns }: ListRequest,
  count: (() => Promise<number>) | null,
): Promise<Reply> {
  const { limit, after } = query;
  const readPage = (page: PageRequest) =>
    within(pageMs, async (call) => {
      if (turns === undefined) return await fetch(page, call);
      using _ = await takeTurn(turns, call.signal);
      // Nothing ends what the owner has begun to read, so the turn lasts until it answers.
      const { deadline, trace, requestId } = call;
      const timeoutMs = deadline.remainingMs();
      using own = createCallContext({ timeoutMs, trace, ...(requestId !== undefined && { requestId }) });
      return await fetch(page, own);
    });
  const pages = pagesOf(readPage, limit, after);
  if (count === null)
    return withTag(await (limit === undefined ? jsonArray(pages) : linkedArray(pages, { path, query })));
  const headerOf = async (total: Promise<number>): Promise<Reply["headers"]> =>
    total.then((items) => ({ "Total-Count": String(items) })).catch(() => ({}));
  if (limit === undefined) {
    const isWhole = ({ last }: ListPage) => last && after === undefined;
    const counted = (first: ListPage) =>
      headerOf(isWhole(first) ? Promise.resolve(countItems(first.items)) : count());
    return withTag(await jsonArray(pages, counted));
  }
  const [list, header] = await Promise.all([linkedArray(pages, { path, query }), headerOf(count())]);
  return withTag({ ...list, headers: { ...list.headers, ...header } });
}
