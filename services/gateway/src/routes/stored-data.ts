import { defaultRecordLimit } from "@devmesh/contracts/model/data-record";
import { storedData } from "@devmesh/contracts/rest/stored-data";
import { stream } from "../http/exchange.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";
import { asCsv, asNdjson } from "./record-export.ts";
import { answerRecords, assertRecordLimit, pagesOfAllRecords, recordPages } from "./record-pages.ts";

/** `GET /data` (api.md, Stored data). `data` decides which records a key sees. */
export function storedDataHandlers({ data }: GatewayClients): Handlers<keyof typeof storedData> {
  return {
    async queryRecords({ query, principal, keyId: caller, preferred, within }) {
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
