import type { data } from "@devmesh/contracts/data";
import { maxRecordLimit } from "@devmesh/contracts/model/data-record";
import { definedMembers } from "@devmesh/service-kit/defined-members";
import type { CallInput } from "@devmesh/service-kit/rpc/implementation";
import { withTag } from "../http/conditional.ts";
import type { Reply, Within } from "../http/exchange.ts";
import { invalidRequest } from "../http/gateway-errors.ts";
import { type AskedList, jsonArray, type ListPages, linkHeader, pagesOf } from "../http/paged-list.ts";
import type { GatewayClients } from "./handlers.ts";

type QueryInput = CallInput<typeof data, "queryRecords">;

/** A query of records; undefined members are left out. */
export type RecordQuery = Pick<QueryInput, "principal"> & {
  readonly [K in keyof QueryInput]?: QueryInput[K] | undefined;
};

/** Timeout for one page, in milliseconds. */
const pageMs = 5_000;

/** Throws `invalid_request` for more records than one answer holds. */
export function assertRecordLimit(limit: number | undefined): void {
  if (limit === undefined || limit <= maxRecordLimit) return;
  throw invalidRequest([{ pointer: "/query/limit", detail: `must be at most ${maxRecordLimit}` }]);
}

/** The pages of a query with at most `limit` records over all of them; null or none for all that match. */
export function recordPages(
  client: GatewayClients["data"],
  { skip = 0, limit, after, ...query }: RecordQuery,
  within: Within,
): ListPages {
  // A negative skip limits the answer, too: records that are stored meanwhile do not belong to it.
  const most = skip < 0 ? Math.min(limit ?? -skip, -skip) : (limit ?? undefined);
  const input = { ...query, skip };
  return pagesOf(
    ({ limit: wanted = null, after: cursor }) =>
      within(pageMs, (call) =>
        client.bytes.queryRecords(
          definedMembers({
            ...input,
            limit: wanted,
            after: cursor,
            ...(cursor === after ? {} : { skip: 0 }),
          }),
          call,
        ),
      ),
    most,
    after,
  );
}

/** The records of a query as one JSON array, with a `Link` to those that follow. */
export async function answerRecords(
  client: GatewayClients["data"],
  query: RecordQuery & { readonly limit: number },
  within: Within,
  asked: AskedList,
): Promise<Reply> {
  const records = await jsonArray(recordPages(client, query, within), async ({ next, last }) => {
    if (query.limit === 0) return {};
    return linkHeader(asked, last ? next : await cursorAfterAll(client, query, within));
  });
  return withTag(records);
}

/**
 * The cursor after the last record of a query whose answer takes several pages: it must be known before they are
 * streamed. Only that record is read, unless the query goes on from a cursor, which replaces `skip`.
 */
async function cursorAfterAll(
  client: GatewayClients["data"],
  query: RecordQuery & { readonly limit: number },
  within: Within,
): Promise<string | null> {
  const { skip = 0, limit, after } = query;
  const most = skip < 0 ? Math.min(limit, -skip) : limit;
  const takesSkip = after === undefined || /^\d+$/.test(after);
  const last = takesSkip ? { ...query, skip: skip + most - 1, limit: 1 } : query;
  let cursor: string | null = null;
  for await (const { next } of recordPages(client, last, within)) cursor = next;
  return cursor;
}

/**
 * The pages of all records that match, except those stored after the first page, of which the last page may hold
 * some: an export that is slower than the devices would never end. With `skip` cursors are no record ids, and it ends
 * with the last record.
 */
export async function* pagesOfAllRecords(
  client: GatewayClients["data"],
  query: RecordQuery,
  within: Within,
): ListPages {
  let newest: number | undefined;
  for await (const page of recordPages(client, { ...query, limit: null }, within)) {
    if (page.next !== null) newest ??= await newestRecord(client, query, within);
    yield page;
    if (newest === undefined || page.next === null) continue;
    if (/^\d+$/.test(page.next) && Number(page.next) >= newest) return;
  }
}

/** Id of the newest record that the key sees of the device; 0 without any. */
async function newestRecord(
  client: GatewayClients["data"],
  { principal, caller, device_id }: RecordQuery,
  within: Within,
): Promise<number> {
  const query = definedMembers({ principal, caller, device_id, skip: -1, limit: 1 });
  const { items, next } = await within(pageMs, (call) => client.queryRecords(query, call));
  // A search that takes too long returns an empty page with a cursor.
  return items[0]?.id ?? (next === null ? 0 : Number.POSITIVE_INFINITY);
}
