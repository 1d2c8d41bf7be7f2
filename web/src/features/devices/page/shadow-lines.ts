import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { equalJson } from "../shared/json-changes.ts";

/**
 * Comparison of a desired and a reported line: `unasked` is only reported, `missing` only desired, `differs` has two
 * values; `same` also for lines that only contain others.
 */
export type LineStatus = "same" | "unasked" | "differs" | "missing";

/** A line of both states as JSON, side by side; null where one of them has none. */
export interface ShadowLine {
  readonly desired: string | null;
  readonly reported: string | null;
  readonly status: LineStatus;
  /** Path of the leaf; empty for braces. */
  readonly path: string;
}

/** Both states as JSON in lines that belong together: members of the desired state first, in its order. */
export function shadowLines(desired: JsonObject, reported: JsonObject): readonly ShadowLine[] {
  const lines: ShadowLine[] = [{ desired: "{", reported: "{", status: "same", path: "" }];
  addMembers(desired, reported, [], lines);
  lines.push({ desired: "}", reported: "}", status: "same", path: "" });
  return lines;
}

/** The desired state as text, with an empty line for each that is only reported: blanks mean nothing in JSON. */
export function desiredText(lines: readonly ShadowLine[]): string {
  return lines.map(({ desired }) => desired ?? "").join("\n");
}

/** Number of leaves that are desired and not reported so. */
export function countDifferences(lines: readonly ShadowLine[]): number {
  return lines.filter(({ status, path }) => path !== "" && (status === "differs" || status === "missing"))
    .length;
}

function addMembers(
  desired: JsonObject | null,
  reported: JsonObject | null,
  path: readonly string[],
  lines: ShadowLine[],
): void {
  const wanted = Object.keys(desired ?? {});
  const known = Object.keys(reported ?? {});
  const names = [...wanted, ...known.filter((name) => desired === null || !Object.hasOwn(desired, name))];
  const lastKnown = names.findLast((name) => reported !== null && Object.hasOwn(reported, name));
  for (const name of names) {
    const ends = [name === wanted.at(-1) ? "" : ",", name === lastKnown ? "" : ","] as const;
    addMember(name, memberOf(desired, name), memberOf(reported, name), ends, path, lines);
  }
}

function addMember(
  name: string,
  desired: Json | undefined,
  reported: Json | undefined,
  [desiredEnd, reportedEnd]: readonly [string, string],
  around: readonly string[],
  lines: ShadowLine[],
): void {
  const path = [...around, name];
  const label = `${"  ".repeat(path.length)}${JSON.stringify(name)}: `;
  const status: LineStatus =
    reported === undefined
      ? "missing"
      : desired === undefined
        ? "unasked"
        : equalJson(desired, reported)
          ? "same"
          : "differs";
  const isOpened = (value: Json | undefined) =>
    value === undefined || (isJsonObject(value) && Object.keys(value).length > 0);
  if (isOpened(desired) && isOpened(reported)) {
    const indent = "  ".repeat(path.length);
    const sides = (open: string, close: string): ShadowLine => ({
      desired: desired === undefined ? null : `${open}${close === "" ? "" : close + desiredEnd}`,
      reported: reported === undefined ? null : `${open}${close === "" ? "" : close + reportedEnd}`,
      status: status === "differs" ? "same" : status,
      path: "",
    });
    lines.push(sides(`${label}{`, ""));
    addMembers(isJsonObject(desired) ? desired : null, isJsonObject(reported) ? reported : null, path, lines);
    lines.push(sides(indent, "}"));
    return;
  }
  lines.push({
    desired: desired === undefined ? null : `${label}${JSON.stringify(desired)}${desiredEnd}`,
    reported: reported === undefined ? null : `${label}${JSON.stringify(reported)}${reportedEnd}`,
    // An empty object is equal to a missing one (api.md, Device).
    status: status === "missing" && isJsonObject(desired) ? "same" : status,
    path: path.join("."),
  });
}

function memberOf(value: JsonObject | null, name: string): Json | undefined {
  return value !== null && Object.hasOwn(value, name) ? value[name] : undefined;
}
