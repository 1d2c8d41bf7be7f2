import { parseConditionText, printConditionText } from "@devmesh/contracts/model/condition-text";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";

/** One term of a condition, as a chip shows it. */
export interface ConditionTerm {
  /** The term as text. */
  readonly text: string;
  readonly subject: string;
  readonly relation: string | undefined;
  readonly value: string;
}

const subjects: Readonly<Record<string, string>> = {
  label: "Label",
  version: "Version",
  silent: "Silent for",
  problem: "Problem",
  online: "Online",
};

/** The terms of a condition, each of which can be taken away. */
export function termsOf(condition: DeviceCondition): readonly ConditionTerm[] {
  return partsOf(condition).map((part) => {
    const text = printConditionText(part);
    const isNegated = text.startsWith("-");
    const bare = isNegated ? text.slice(1) : text;
    const colon = bare.startsWith('"') ? -1 : bare.indexOf(":");
    const field = bare.slice(0, Math.max(0, colon));
    const value = unquoted(bare.slice(colon + 1));
    const relation = isNegated ? "not" : undefined;
    if (colon < 0) return { text, subject: "Contains", relation, value };
    return { text, subject: subjects[field] ?? field, relation, value };
  });
}

/** Conditions with one term each. */
function partsOf(condition: DeviceCondition): DeviceCondition[] {
  const parts: DeviceCondition[] = [];
  for (const [member, value] of Object.entries(condition)) {
    if (member === "shadow" && Array.isArray(value)) {
      for (const one of value) parts.push({ shadow: [one] });
    } else if (typeof value === "object" && value !== null) {
      for (const [list, items] of Object.entries(value))
        for (const item of items as readonly unknown[]) parts.push({ [member]: { [list]: [item] } });
    } else if (value !== undefined) parts.push({ [member]: value });
  }
  return parts;
}

function unquoted(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1).replaceAll(/\\(["\\])/g, "$1") : text;
}

/** A condition as text without a term. */
export function withoutTerm(terms: readonly ConditionTerm[], removed: ConditionTerm): string {
  return terms
    .filter((term) => term !== removed)
    .map(({ text }) => text)
    .join(" ");
}

/** The condition of texts together; that of an invalid one is left out. */
export function conditionOf(...texts: readonly string[]): DeviceCondition {
  const valid = texts.filter((text) => "condition" in parseConditionText(text));
  const parsed = parseConditionText(valid.join(" "));
  return "condition" in parsed ? parsed.condition : {};
}

/** What may be typed next: texts for the whole field, by what is typed and by the values that devices have. */
export function suggestionsFor(
  typed: string,
  known: { readonly labels: readonly string[]; readonly versions: readonly (string | null)[] },
): readonly string[] {
  const begin = typed.lastIndexOf(" ") + 1;
  const before = typed.slice(0, begin);
  const word = typed.slice(begin);
  const sign = word.startsWith("-") ? "-" : "";
  const bare = word.slice(sign.length);
  const ofLabels = known.labels.map((label) => printConditionText({ labels: { all: [label] } }));
  const ofVersions = known.versions.map((version) => printConditionText({ version: { in: [version] } }));
  const colon = bare.indexOf(":");
  const allowed =
    colon < 0 ? [] : allowedIn(bare.slice(0, colon + 1)).map((value) => bare.slice(0, colon + 1) + value);
  const candidates =
    colon < 0
      ? [...allowedIn(""), ...(bare === "" ? [] : [...ofLabels, ...ofVersions])]
      : [...allowed, ...ofLabels, ...ofVersions].filter((each) => each.startsWith(bare.slice(0, colon + 1)));
  const wanted = bare.toLowerCase();
  return [...new Set(candidates)]
    .filter(
      (each) => each !== bare && each.toLowerCase().includes(colon < 0 ? wanted : wanted.slice(colon + 1)),
    )
    .slice(0, 12)
    .map((each) => before + sign + each);
}

/** What the parser allows after a text: fields with their colon, or the values of one. */
function allowedIn(text: string): readonly string[] {
  const parsed = parseConditionText(text === "" ? "?:" : text);
  if (!("error" in parsed)) return [];
  const { allowed } = parsed.error;
  return text === "" ? allowed.map((field) => (field.endsWith("/") ? field : `${field}:`)) : allowed;
}
