import type { data } from "@devmesh/contracts/data";
import { defaultRecordLimit, type storedData } from "@devmesh/contracts/rest/stored-data";
import type { Client } from "@devmesh/service-kit/implementation";
import type { Handlers } from "../handlers.ts";
import { jsonArray } from "../paged-list.ts";
import { asCsv, asNdjson } from "../record-export.ts";
import { assertRecordLimit } from "../record-query.ts";
import { stream } from "../reply.ts";
import { pagesOfAllRecords, recordPages } from "./record-pages.ts";

/** `GET /data` (api.md, Stored data). Which records a key sees is decided by `data`. */
export function storedDataHandlers(clients: {
  readonly data: Client<typeof data, "queryRecords">;
}): Handlers<keyof typeof storedData> {
  return {
    async queryRecords({ query, principal, preferred, within }) {
      const type = preferred(["application/json", "application/x-ndjson", "text/csv"]);
      const records = (limit: number) => recordPages(clients.data, { ...query, principal, limit }, within);
      const exported = () =>
        query.limit === undefined
          ? pagesOfAllRecords(clients.data, { ...query, principal }, within)
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
