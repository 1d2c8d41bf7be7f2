import type { NamedQuery } from "@devmesh/contracts/model/acl";
import { defaultRecordLimit, maxRecordLimit } from "@devmesh/contracts/model/data-record";
import { startOf } from "@devmesh/contracts/model/duration";

/** How the holder of a public key narrows a named query. */
interface Narrowing {
  readonly limit?: number | undefined;
  /** A time or a duration back from now. */
  readonly since?: string | undefined;
}

/**
 * The vendor's query, narrowed and never widened: the smaller `limit`, the later `since` (api.md, Device public key and
 * the ACL). The caller of this function refuses a `limit` over {@link maxRecordLimit} where the query has none.
 */
export function narrowQuery(query: NamedQuery, by: Narrowing, now: Date) {
  const starts = [query.since, by.since].flatMap((since) => (since === undefined ? [] : startOf(since, now)));
  return {
    topic: query.topic,
    order: query.order ?? "asc",
    limit: Math.min(by.limit ?? query.limit ?? defaultRecordLimit, query.limit ?? maxRecordLimit),
    // Canonical timestamps sort as texts.
    since: starts.sort().at(-1),
  };
}
