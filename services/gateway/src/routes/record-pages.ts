import type { data } from "@devmesh/contracts/data";
import type { CallInput, Client } from "@devmesh/service-kit/implementation";
import type { Within } from "../http/handlers.ts";
import { type ListPages, pagesOf } from "../http/paged-list.ts";

type RecordQuery = CallInput<typeof data, "queryRecords">;

/** A query of records; members left undefined are not asked for. */
export type RecordWishes = Pick<RecordQuery, "principal"> & {
  readonly [K in keyof RecordQuery]?: RecordQuery[K] | undefined;
};

/** Time for one page, in milliseconds. */
const pageMs = 20_000;

/** The pages of a query, `limit` counted over all of them; null or none means all that match. */
export function recordPages(
  client: Client<typeof data, "queryRecords">,
  { skip = 0, limit, after, ...query }: RecordWishes,
  within: Within,
): ListPages {
  const asked = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
  // A negative skip bounds the answer as well: what is stored meanwhile behind its records does not belong to it.
  const most = skip < 0 ? Math.min(limit ?? -skip, -skip) : (limit ?? undefined);
  const first = { ...(asked as Pick<RecordQuery, "principal">), skip };
  return pagesOf(
    ({ limit: wanted = null, after: cursor }) => {
      const begins = cursor === after;
      return within(pageMs, (call) =>
        client.bytes.queryRecords(
          {
            ...first,
            limit: wanted,
            ...(begins ? {} : { skip: 0 }),
            ...(cursor === undefined ? {} : { after: cursor }),
          },
          call,
        ),
      );
    },
    most,
    after,
  );
}

/**
 * The pages of all records that match, but for those stored after the first page was asked for, of which the last
 * page may hold some: a client that reads more slowly than devices publish would never come to an end. Behind a
 * `skip` that does not hold, since the cursors are no record ids there.
 */
export async function* pagesOfAllRecords(
  client: Client<typeof data, "queryRecords">,
  wishes: RecordWishes,
  within: Within,
): ListPages {
  let newest: number | undefined;
  for await (const page of recordPages(client, { ...wishes, limit: null }, within)) {
    if (page.next !== null) newest ??= await newestRecord(client, wishes, within);
    yield page;
    if (newest !== undefined && page.next !== null && isRecordId(page.next) && Number(page.next) >= newest)
      return;
  }
}

/** The id of the record stored last, of all that the key sees of the device asked for; 0 where there is none. */
async function newestRecord(
  client: Client<typeof data, "queryRecords">,
  { principal, caller, device_id }: RecordWishes,
  within: Within,
): Promise<number> {
  const asked = {
    principal,
    ...(caller === undefined ? {} : { caller }),
    ...(device_id === undefined ? {} : { device_id }),
  };
  const { items, next } = await within(pageMs, (call) =>
    client.queryRecords({ ...asked, skip: -1, limit: 1 }, call),
  );
  // A search that takes too long hands over an empty page.
  return items[0]?.id ?? (next === null ? 0 : Number.POSITIVE_INFINITY);
}

function isRecordId(cursor: string): boolean {
  return /^\d+$/.test(cursor);
}
