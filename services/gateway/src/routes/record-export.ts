import { DataRecord } from "@devmesh/contracts/model/data-record";
import { withoutFormulas } from "@devmesh/contracts/model/spreadsheet-text";
import { stringify } from "csv-stringify/sync";
import { asLines } from "../http/json-bytes.ts";
import type { ListPage } from "../http/paged-list.ts";

/** The columns are the members of a record. */
const columns = Object.keys(DataRecord.shape);

/** Records as NDJSON, in the bytes of their owner. */
export async function* asNdjson(pages: AsyncIterable<ListPage>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const { items } of pages) yield asLines(items);
}

/** Records as CSV (RFC 4180) with a header line; texts are quoted, since they may hold line breaks. */
export async function* asCsv(pages: AsyncIterable<ListPage>): AsyncGenerator<string, void, undefined> {
  let begun = false;
  for await (const { items } of pages) {
    if (!begun) yield `${columns.join(",")}\r\n`;
    begun = true;
    const records: unknown[] = JSON.parse(`[${Buffer.from(items).toString("utf8")}]`);
    yield stringify(records, {
      columns,
      quoted_string: true,
      record_delimiter: "windows",
      cast: { string: withoutFormulas },
    });
  }
}
