import { withoutFormulas } from "@devmesh/contracts/model/spreadsheet-text";

/** Rows as CSV (RFC 4180), without formulas. */
export function csvOf(rows: readonly (readonly string[])[]): string {
  const cellOf = (text: string) => {
    const safe = withoutFormulas(text);
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => `${row.map(cellOf).join(",")}\r\n`).join("");
}

/** Offers rows as a file. */
export function saveCsv(name: string, rows: readonly (readonly string[])[]): void {
  const url = URL.createObjectURL(new Blob([csvOf(rows)], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
