import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { equalJson } from "./equal-json.ts";

/**
 * How a line of what is reported stands to what is desired: `unasked` is desired by nobody, `missing` desired and not
 * reported, `differs` reported with another value; `same` also for what only holds other lines.
 */
type LineStanding = "same" | "unasked" | "differs" | "missing";

/** One line of `reported` as JSON, with lines for what is missing in it. */
export interface ComparisonLine {
  readonly indent: number;
  readonly text: string;
  readonly standing: LineStanding;
  /** The desired value in compact JSON, where it differs; null otherwise. */
  readonly desired: string | null;
}

/** Writes `reported` as JSON line by line and marks where it is not what is desired: by leaves, as `delta` has it. */
export function compareShadow(desired: JsonObject, reported: JsonObject): ComparisonLine[] {
  const lines: ComparisonLine[] = [];
  lines.push({ indent: 0, text: "{", standing: "same", desired: null });
  compareMembers(desired, reported, 1, lines);
  lines.push({ indent: 0, text: "}", standing: "same", desired: null });
  return lines;
}

/** How many leaves a device has still to take over. */
export function countDifferences(lines: readonly ComparisonLine[]): number {
  return lines.filter(({ standing }) => standing === "differs" || standing === "missing").length;
}

/** The lines of what the device has still to take over, with the objects that they stand in. */
export function onlyDifferences(lines: readonly ComparisonLine[]): ComparisonLine[] {
  const shown: ComparisonLine[] = [];
  /** Objects that the line at hand stands in, and whether they are shown. */
  const around: { readonly line: ComparisonLine; isShown: boolean }[] = [];
  for (const line of lines) {
    if (line.text === "}") {
      if (around.pop()?.isShown) shown.push(line);
    } else if (line.text.endsWith("{")) {
      around.push({ line, isShown: false });
    } else if (line.standing === "differs" || line.standing === "missing") {
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
      const standing = wanted === undefined ? "unasked" : "same";
      lines.push({ indent, text: `${label}{`, standing, desired: null });
      compareMembers(wanted ?? null, value, indent + 1, lines);
      lines.push({ indent, text: "}", standing, desired: null });
    } else if (wanted === undefined) {
      lines.push({ indent, text: label + compact(value), standing: "unasked", desired: null });
    } else if (equalJson(wanted, value)) {
      lines.push({ indent, text: label + compact(value), standing: "same", desired: null });
    } else {
      lines.push({ indent, text: label + compact(value), standing: "differs", desired: compact(wanted) });
    }
  }
  for (const [name, wanted] of Object.entries(desired ?? {})) {
    if (!Object.hasOwn(reported, name)) addMissing(name, wanted, indent, lines);
  }
}

/** An empty object against nothing is no difference (api.md, Device). */
function addMissing(name: string, wanted: Json, indent: number, lines: ComparisonLine[]): void {
  const label = `${JSON.stringify(name)}: `;
  if (!isJsonObject(wanted)) {
    lines.push({ indent, text: label + compact(wanted), standing: "missing", desired: compact(wanted) });
    return;
  }
  const below: ComparisonLine[] = [];
  for (const [member, value] of Object.entries(wanted)) addMissing(member, value, indent + 1, below);
  if (below.length === 0) return;
  lines.push({ indent, text: `${label}{`, standing: "same", desired: null }, ...below);
  lines.push({ indent, text: "}", standing: "same", desired: null });
}

function compact(value: Json): string {
  return JSON.stringify(value);
}
