import { namesAndNumbersOf } from "./json.ts";
import { pointerToken } from "./json-pointer.ts";
import type { ViolationList } from "./violation.ts";

/** Found in each JSON text with a number that {@link isKept} refuses, and in few others. */
const suspicion = /(?<![\d.])(?:\d{16}|[\d.]{16,}e\+?\d)|\de\+?\d{3}/i;

/**
 * Finds numbers of a valid JSON text that `JSON.parse` and `JSON.stringify` change: those beyond the range of a double,
 * and those from 2^53 with other digits. Smaller fractions are rounded, which is no change (RFC 8259, 6).
 */
export function checkNumbers(json: string, violations: ViolationList): void {
  if (!suspicion.test(json)) return;
  for (const { number, levels } of namesAndNumbersOf(json)) {
    if (violations.full) return;
    if (number !== undefined && !isKept(number))
      violations.add(levels.map(({ key }) => pointerToken(key)).join(""), refusalOf(number));
  }
}

/** Why a number is refused that is not kept. */
function refusalOf(text: string): string {
  return Number.isFinite(Number(text))
    ? "is a number with more digits than a double holds; a text keeps them"
    : "is a number beyond the range of a double";
}

/** Whether a number of JSON, as it is written, is finite and keeps its digits, apart from those of a fraction. */
export function isKept(text: string): boolean {
  const value = Number(text);
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return true;
  return Number.isFinite(value) && decimalOf(text) === decimalOf(String(value));
}

/** A decimal in the one form that equal ones share. */
function decimalOf(text: string): string {
  const [mantissa = "", exponent = "0"] = text.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const digits = (whole + fraction).replace(/^0+/, "");
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  return `${digits.slice(0, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}
