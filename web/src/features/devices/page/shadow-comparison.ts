import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { equalJson } from "./json-changes.ts";

/**
 * Comparison of a reported line with the desired state: `unasked` is not desired, `missing` desired but not reported,
 * `differs` reported with another value; `same` also for lines that only contain others.
 */
type LineStatus = "same" | "unasked" | "differs" | "missing";

/** One line of `reported` as JSON; missing members have lines, too. */
export interface ComparisonLine {
  readonly indent: number;
  readonly text: string;
  readonly status: LineStatus;
  /** A different desired value in compact JSON; null for none. */
  readonly desired: string | null;
}

/** Formats `reported` as lines of JSON and compares its leaves with the desired state, as `delta` does. */
export function compareShadow(desired: JsonObject, reported: JsonObject): ComparisonLine[] {
  const lines: ComparisonLine[] = [];
  lines.push({ indent: 0, text: "{", status: "same", desired: null });
  compareMembers(desired, reported, 1, lines);
  lines.push({ indent: 0, text: "}", status: "same", desired: null });
  return lines;
}

/** Number of leaves that differ. */
export function countDifferences(lines: readonly ComparisonLine[]): number {
  return lines.filter(({ status }) => status === "differs" || status === "missing").length;
}

/** The lines that differ, with the objects around them. */
export function onlyDifferences(lines: readonly ComparisonLine[]): ComparisonLine[] {
  const shown: ComparisonLine[] = [];
  /** Objects around the current line, and whether they are shown. */
  const around: { readonly line: ComparisonLine; isShown: boolean }[] = [];
  for (const line of lines) {
    if (line.text === "}") {
      if (around.pop()?.isShown) shown.push(line);
    } else if (line.text.endsWith("{")) {
      around.push({ line, isShown: false });
    } else if (line.status === "differs" || line.status === "missing") {
      for (const each of around) {
        if (!each.isShown) shown.push(each.line);
        each.isShown = true;
      }
      shown.push(line);
    }
  }
  return shown;
}

function compareMembers(
  desired: JsonObject | null,
  reported: JsonObject,
  indent: number,
  lines: ComparisonLine[],
): void {
  for (const [name, value] of Object.entries(reported)) {
    const wanted = desired !== null && Object.hasOwn(desired, name) ? desired[name] : undefined;
    const label = `${JSON.stringify(name)}: `;
    if (isJsonObject(value) && (wanted === undefined || isJsonObject(wanted))) {
      const status = wanted === undefined ? "unasked" : "same";
      lines.push({ indent, text: `${label}{`, status, desired: null });
      compareMembers(wanted ?? null, value, indent + 1, lines);
      lines.push({ indent, text: "}", status, desired: null });
    } else {
      const status = wanted === undefined ? "unasked" : equalJson(wanted, value) ? "same" : "differs";
      const desired = status === "differs" ? JSON.stringify(wanted) : null;
      lines.push({ indent, text: label + JSON.stringify(value), status, desired });
    }
  }
  for (const [name, wanted] of Object.entries(desired ?? {})) {
    if (!Object.hasOwn(reported, name)) addMissing(name, wanted, indent, lines);
  }
}

/** An empty object is equal to a missing one (api.md, Device). */
function addMissing(name: string, wanted: Json, indent: number, lines: ComparisonLine[]): void {
  const label = `${JSON.stringify(name)}: `;
  if (!isJsonObject(wanted)) {
    const desired = JSON.stringify(wanted);
    lines.push({ indent, text: label + desired, status: "missing", desired });
    return;
  }
  const below: ComparisonLine[] = [];
  for (const [member, value] of Object.entries(wanted)) addMissing(member, value, indent + 1, below);
  if (below.length === 0) return;
  lines.push({ indent, text: `${label}{`, status: "same", desired: null }, ...below);
  lines.push({ indent, text: "}", status: "same", desired: null });
}
