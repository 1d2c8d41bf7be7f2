import type { data } from "@devmesh/contracts/data";
import type { CallInput, Client } from "@devmesh/service-kit/implementation";
import type { Within } from "../handlers.ts";
import { type ListPages, pagesOf } from "../paged-list.ts";

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
