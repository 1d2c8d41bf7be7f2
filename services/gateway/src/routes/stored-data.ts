import { defaultRecordLimit } from "@devmesh/contracts/model/data-record";
import { storedData } from "@devmesh/contracts/rest/stored-data";
import { stream } from "../http/reply.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";
import { asCsv, asNdjson } from "./record-export.ts";
import { answerRecords, assertRecordLimit, pagesOfAllRecords, recordPages } from "./record-pages.ts";

/** Tokens of a query that scans all records, beyond the one of its request (api.md, Conventions). */
const scanTokens = 19;

/** No index finds a filter of one or two characters. */
function isScan(filter: string | undefined): boolean {
  const length = [...(filter ?? "")].length;
  return length === 1 || length === 2;
}

/** `GET /data` (api.md, Stored data). `data` decides which records a key sees. */
export function storedDataHandlers({ data }: GatewayClients): Handlers<keyof typeof storedData> {
  return {
    async queryRecords({ query, principal, keyId: caller, charge, preferred, within }) {
      if (isScan(query.filter)) charge(scanTokens);
      const type = preferred(["application/json", "application/x-ndjson", "text/csv"]);
      const records = { ...query, principal, caller };
      if (type === "application/json") {
        const { limit = defaultRecordLimit } = query;
        assertRecordLimit(limit);
        const asked = { path: storedData.queryRecords.path, query: { ...query, limit } };
        return answerRecords(data, { ...records, limit }, within, asked);
      }
      const pages = (query.limit === undefined ? pagesOfAllRecords : recordPages)(data, records, within);
      return type === "text/csv"
        ? stream("text/csv; charset=utf-8; header=present", asCsv(pages))
        : stream("application/x-ndjson", asNdjson(pages));
    },
  };
}
