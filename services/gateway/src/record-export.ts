import { DataRecord } from "@devmesh/contracts/model/data-record";
import { stringify } from "csv-stringify/sync";
import { asLines } from "./json-items.ts";
import type { ListPage } from "./paged-list.ts";

/** Members of a record in the order of the columns. */
const columns = Object.keys(DataRecord.shape);

/** Records as NDJSON: one JSON object a line, bytes as their owner sent them. */
export async function* asNdjson(pages: AsyncIterable<ListPage>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const { items } of pages) yield asLines(items);
}

/** Records as CSV after RFC 4180, with a header line; every text is quoted, so that no line break is mistaken for an end. */
export async function* asCsv(pages: AsyncIterable<ListPage>): AsyncGenerator<string, void, undefined> {
  let begun = false;
  for await (const { items } of pages) {
    const records: unknown[] = JSON.parse(`[${Buffer.from(items).toString("utf8")}]`);
    yield stringify(records, { header: !begun, columns, quoted_string: true, record_delimiter: "windows" });
    begun = true;
  }
}
