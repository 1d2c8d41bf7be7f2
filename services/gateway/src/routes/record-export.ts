import { DataRecord } from "@devmesh/contracts/model/data-record";
import { stringify } from "csv-stringify/sync";
import { asLines } from "../http/json-bytes.ts";
import type { ListPage } from "../http/paged-list.ts";

/** The columns are the members of a record. */
const columns = Object.keys(DataRecord.shape);

/** Records as NDJSON, in the bytes of their owner. */
export async function* asNdjson(pages: AsyncIterable<ListPage>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const { items } of pages) yield asLines(items);
}

/**
 * Formulas of a spreadsheet, full-width forms included, with what they follow. Where it separates cells by semicolons
 * or tabs, it takes no notice of the quotes, and begins a cell after line breaks, too.
 */
const formulas = /(^|[;\t\r\n]"*)([=+\-@\uFF1D\uFF0B\uFF0D\uFF20][^;\t\r\n]*)/g;
const number = /^[+-]\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"*$/;

/** Devices choose these texts: an apostrophe keeps spreadsheets from running a formula (OWASP, CSV injection). */
export function withoutFormulas(text: string): string {
  return text.replace(formulas, (cell, before, formula) =>
    number.test(formula) ? cell : `${before}'${formula}`,
  );
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
