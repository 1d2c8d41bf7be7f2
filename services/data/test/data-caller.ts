import { data } from "@devmesh/contracts/data";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { calls } from "@devmesh/contracts/topology";
import type { Bus } from "@devmesh/service-kit/bus";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import type { CallInput, Client } from "@devmesh/service-kit/rpc/implementation";

/** A query as a test writes it: a master key's, without limit, by default. */
export type CallOptions = Partial<CallInput<typeof data, "queryRecords">>;

/** The other side of the data service's contract. */
export interface DataCaller {
  readonly client: Client<typeof data>;
  call(): CallContext;
  /** All pages of a query. */
  allRecords(query: CallOptions): Promise<DataRecord[]>;
}

/** Calls the data service over a bus. */
export function dataCaller(bus: Bus): DataCaller {
  const client = createClient(
    bus,
    calls(data, [
      "queryRecords",
      "followRecords",
      "readLatest",
      "listLatest",
      "countTopics",
      "readSeries",
      "listSeries",
      "purgeDevice",
      "admitDevice",
      "readBacklog",
    ]),
  );
  const call = () => createCallContext({ timeoutMs: 20_000 });
  return {
    client,
    call,
    async allRecords(query) {
      const records: DataRecord[] = [];
      let after = query.after;
      for (;;) {
        const limit = typeof query.limit === "number" ? query.limit - records.length : null;
        const page = await client.queryRecords(
          { principal: { kind: "master" }, ...query, limit, ...(after === undefined ? {} : { after }) },
          call(),
        );
        records.push(...page.items);
        if (page.next === null || records.length === query.limit) return records;
        after = page.next;
      }
    },
  };
}
