/** Cells that a spreadsheet would run as a formula (OWASP, CSV injection); numbers are none. */
const formula = /^[=+\-@\t\r]/;
const number = /^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/;

/** Rows as CSV (RFC 4180). Devices choose such texts: an apostrophe keeps spreadsheets from running a formula. */
export function csvOf(rows: readonly (readonly string[])[]): string {
  const cellOf = (text: string) => {
    const safe = formula.test(text) && !number.test(text) ? `'${text}` : text;
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
