import type { data } from "@devmesh/contracts/data";
import { defaultRecordLimit, type storedData } from "@devmesh/contracts/rest/stored-data";
import type { Client } from "@devmesh/service-kit/implementation";
import type { Handlers } from "../http/handlers.ts";
import { jsonArray } from "../http/paged-list.ts";
import { stream } from "../http/reply.ts";
import { asCsv, asNdjson } from "./record-export.ts";
import { pagesOfAllRecords, recordPages } from "./record-pages.ts";
import { assertRecordLimit } from "./record-query.ts";

/** What a query that reads through the records costs beyond the token of its request (api.md, Conventions). */
const scanTokens = 19;

/** Whether no index finds the filter: it has one or two characters. */
function isScan(filter: string | undefined): boolean {
  const length = [...(filter ?? "")].length;
  return length === 1 || length === 2;
}

/** `GET /data` (api.md, Stored data). Which records a key sees is decided by `data`. */
export function storedDataHandlers(clients: {
  readonly data: Client<typeof data, "queryRecords">;
}): Handlers<keyof typeof storedData> {
  return {
    async queryRecords({ query, principal, keyId: caller, charge, preferred, within }) {
      if (isScan(query.filter)) charge(scanTokens);
      const type = preferred(["application/json", "application/x-ndjson", "text/csv"]);
      const records = (limit: number) =>
        recordPages(clients.data, { ...query, principal, caller, limit }, within);
      const exported = () =>
        query.limit === undefined
          ? pagesOfAllRecords(clients.data, { ...query, principal, caller }, within)
          : records(query.limit);
      switch (type) {
        case "application/x-ndjson":
          return stream("application/x-ndjson", asNdjson(exported()));
        case "text/csv":
          return stream("text/csv; charset=utf-8; header=present", asCsv(exported()));
        default: {
          const { limit = defaultRecordLimit } = query;
          assertRecordLimit(limit);
          return jsonArray(records(limit));
        }
      }
    },
  };
}
