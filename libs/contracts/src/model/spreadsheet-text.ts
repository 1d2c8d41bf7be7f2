/**
 * Formulas of a spreadsheet, full-width forms included, with what they follow. Where it separates cells by semicolons
 * or tabs, it takes no notice of the quotes, and begins a cell after line breaks, too.
 */
const formulas = /(^|[;\t\r\n]"*)([=+\-@\uFF1D\uFF0B\uFF0D\uFF20][^;\t\r\n]*)/g;
const number = /^[+-]\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"*$/;

/** Characters that a spreadsheet may drop from the begin of a cell, and then run what follows. */
const dropped = /^[\t\r\n]/;

/** Devices choose texts of CSV: an apostrophe keeps spreadsheets from running a formula (OWASP, CSV injection). */
export function withoutFormulas(text: string): string {
  const disarmed = text.replace(formulas, (cell, before, formula) =>
    number.test(formula) ? cell : `${before}'${formula}`,
  );
  return dropped.test(disarmed) ? `'${disarmed}` : disarmed;
}
