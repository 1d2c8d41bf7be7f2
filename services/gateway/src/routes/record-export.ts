import { DataRecord } from "@devmesh/contracts/model/data-record";
import { stringify } from "csv-stringify/sync";
import { asLines } from "../http/json-items.ts";
import type { ListPage } from "../http/paged-list.ts";

/** Members of a record in the order of the columns. */
const columns = Object.keys(DataRecord.shape);

/** Records as NDJSON: one JSON object a line, bytes as their owner sent them. */
export async function* asNdjson(pages: AsyncIterable<ListPage>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const { items } of pages) yield asLines(items);
}

/** What a spreadsheet takes for the start of a formula, full-width forms included. */
const formula = /^[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/;
const number = /^[+-]\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Devices choose these texts: an apostrophe before a formula keeps spreadsheets from running it (OWASP, CSV
 * injection).
 */
function withoutFormula(text: string): string {
  return formula.test(text) && !number.test(text) ? `'${text}` : text;
}

/**
 * Records as CSV after RFC 4180: a header line of the member names, then a line a record with its texts quoted, so that
 * no line break in one is mistaken for an end.
 */
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
      cast: { string: withoutFormula },
    });
  }
}
