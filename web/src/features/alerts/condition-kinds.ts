import type { RuleCondition, ValueCondition } from "@devmesh/contracts/model/rule";
import { numberFormat } from "../../components/locale.ts";
import { valueText } from "../../components/number-text.ts";
import { durationAsTyped, typedDuration } from "../../components/typed-duration.ts";

type ConditionKind = RuleCondition["kind"];

/** A condition as it is typed; a text may be empty for the default. */
export interface TypedCondition {
  readonly kind: ConditionKind;
  readonly topic: string;
  /** JSON pointer; empty for the whole message. */
  readonly pointer: string;
  /** JSON pointer into the shadow. */
  readonly place: string;
  readonly is: (typeof comparisons)[number]["value"];
  /** A number, `true`, `false` or text; a text that looks like one of these is in quotes. */
  readonly than: string;
  /** The bounds of `outside` and `inside`. */
  readonly low: string;
  readonly high: string;
  /** A number; empty for none. */
  readonly clear_at: string;
  /** A duration. */
  readonly longer_than: string;
  /** Name of a frame. */
  readonly event: string;
  readonly count: string;
  /** A duration. */
  readonly within: string;
}

export const emptyCondition: TypedCondition = {
  kind: "value",
  topic: "",
  pointer: "",
  place: "",
  is: ">",
  than: "",
  low: "",
  high: "",
  clear_at: "",
  longer_than: "",
  event: "",
  count: "",
  within: "",
};

export const comparisons = [
  { value: ">", label: "is above" },
  { value: ">=", label: "is at least" },
  { value: "<", label: "is below" },
  { value: "<=", label: "is at most" },
  { value: "==", label: "is" },
  { value: "!=", label: "is not" },
  { value: "outside", label: "is outside of" },
  { value: "inside", label: "is within" },
] as const;

/** Whether a comparison has two bounds. */
export function hasBounds(is: TypedCondition["is"]): boolean {
  return is === "outside" || is === "inside";
}

/** Whether a comparison has an order, and thus an end that may differ from its begin. */
export function hasOrder(is: TypedCondition["is"]): boolean {
  return is.startsWith(">") || is.startsWith("<");
}

/** What the dashboard has of one kind of condition. */
interface KnownCondition<C> {
  /** After "When". */
  readonly label: string;
  /** It can be asked for how long it has to hold. */
  readonly holds: boolean;
  /** The time that it is tried on; null for a condition that only has a present. */
  readonly past: "7 days" | "hour" | null;
  /** In a sentence: "celsius of climate is above 8". */
  text(when: C): string;
  /** The condition that is typed, to be checked by its schema. */
  read(typed: TypedCondition): Readonly<Record<string, unknown>>;
  /** As it is typed. */
  typed(when: C): Partial<TypedCondition>;
}

/** The kinds of conditions, in the order in which they are offered. */
export const conditionKinds: {
  readonly [K in ConditionKind]: KnownCondition<Extract<RuleCondition, { readonly kind: K }>>;
} = {
  value: {
    label: "a value",
    holds: true,
    past: "7 days",
    text: ({ is, than, clear_at, ...subject }) =>
      `${subjectOf(subject)} ${comparisonText({ is, than })}${clear_at === undefined ? "" : ` (until ${valueText(clear_at)})`}`,
    read: (typed) => ({
      kind: "value",
      topic: typed.topic.trim(),
      pointer: typed.pointer.trim(),
      ...typedComparison(typed),
      ...(hasOrder(typed.is) && typed.clear_at.trim() !== "" && { clear_at: typedNumber(typed.clear_at) }),
    }),
    typed: ({ topic, pointer, clear_at, ...comparison }) => ({
      topic,
      pointer,
      ...comparisonAsTyped(comparison),
      ...(clear_at !== undefined && { clear_at: asTyped(clear_at) }),
    }),
  },
  silent: {
    label: "no record",
    holds: false,
    past: "7 days",
    text: ({ topic, longer_than }) =>
      `no record comes${topic === undefined ? "" : ` on ${topic}`} for longer than ${durationAsTyped(longer_than)}`,
    read: ({ topic, longer_than }) => ({
      kind: "silent",
      ...(topic.trim() !== "" && { topic: topic.trim() }),
      longer_than: typedDuration(longer_than),
    }),
    typed: ({ topic = "", longer_than }) => ({ topic, longer_than: durationAsTyped(longer_than) }),
  },
  offline: {
    label: "a device",
    holds: false,
    past: null,
    text: ({ longer_than }) => `a device has no connection for longer than ${durationAsTyped(longer_than)}`,
    read: ({ longer_than }) => ({ kind: "offline", longer_than: typedDuration(longer_than) }),
    typed: ({ longer_than }) => ({ longer_than: durationAsTyped(longer_than) }),
  },
  shadow: {
    label: "the shadow",
    holds: true,
    past: null,
    text: ({ pointer, is, than }) => `${pointer} of the shadow ${comparisonText({ is, than })}`,
    read: (typed) => ({ kind: "shadow", pointer: typed.place.trim(), ...typedComparison(typed) }),
    typed: ({ pointer, ...comparison }) => ({ place: pointer, ...comparisonAsTyped(comparison) }),
  },
  not_taken: {
    label: "what is desired",
    holds: false,
    past: null,
    text: ({ longer_than }) =>
      `what is desired is not reported for longer than ${durationAsTyped(longer_than)}`,
    read: ({ longer_than }) => ({ kind: "not_taken", longer_than: typedDuration(longer_than) }),
    typed: ({ longer_than }) => ({ longer_than: durationAsTyped(longer_than) }),
  },
  event: {
    label: "an event",
    holds: false,
    past: "hour",
    text: ({ name, count, within }) =>
      `${name} happens ${count === 1 ? "once" : `${valueText(count)} times`} within ${durationAsTyped(within)}`,
    read: ({ event, count, within }) => ({
      kind: "event",
      name: event.trim(),
      count: typedNumber(count),
      within: typedDuration(within),
    }),
    typed: ({ name, count, within }) => ({
      event: name,
      count: asTyped(count),
      within: durationAsTyped(within),
    }),
  },
};

/** The fields of members of a condition that have another name as they are typed. */
const renamed: Readonly<Record<string, keyof TypedCondition>> = {
  "shadow pointer": "place",
  "event name": "event",
};

/** The field that a member of a condition comes from; its pointer is relative to the condition. */
export function conditionField(
  { kind, is }: Pick<TypedCondition, "kind" | "is">,
  [member = "", item = ""]: readonly string[],
): keyof TypedCondition {
  if (member === "than" && hasBounds(is)) return item === "1" ? "high" : "low";
  return (
    renamed[`${kind} ${member}`] ?? (member in emptyCondition ? (member as keyof TypedCondition) : "kind")
  );
}

/** What the dashboard has of the kind of a condition; null for one that it does not know. */
function kindOf({ kind }: RuleCondition): KnownCondition<never> | null {
  return (conditionKinds as Readonly<Record<string, KnownCondition<never>>>)[kind] ?? null;
}

/** A condition in words. */
export function conditionText(when: RuleCondition): string {
  return kindOf(when)?.text(when as never) ?? JSON.stringify(when);
}

/** A condition as it is typed; null for one of a kind that only the API can change. */
export function conditionAsTyped(when: RuleCondition): TypedCondition | null {
  const kind = kindOf(when);
  return kind && { ...emptyCondition, ...kind.typed(when as never), kind: when.kind };
}

/** What a condition on values is about: "celsius of climate". */
export function subjectOf({ topic, pointer }: Pick<ValueCondition, "topic" | "pointer">): string {
  const place = pointer.slice(1).replaceAll("/", ".").replaceAll("~1", "/").replaceAll("~0", "~");
  return place === "" ? topic : `${place} of ${topic}`;
}

/** A comparison in words: "is above 8". */
export function comparisonText({ is, than }: Pick<ValueCondition, "is" | "than">): string {
  return `${comparisons.find(({ value }) => value === is)?.label ?? is} ${limitText(than)}`;
}

function typedComparison({ is, than, low, high }: TypedCondition) {
  return { is, than: hasBounds(is) ? [typedNumber(low), typedNumber(high)] : typedValue(than) };
}

function comparisonAsTyped({ is, than }: Pick<ValueCondition, "is" | "than">): Partial<TypedCondition> {
  if (!Array.isArray(than)) return { is, than: asTyped(than) };
  return { is, low: asTyped(than[0] ?? 0), high: asTyped(than[1] ?? 0) };
}

function limitText(than: string | number | boolean | readonly number[]): string {
  if (typeof than === "number") return valueText(than);
  if (typeof than === "object") return than.map(valueText).join(" to ");
  return typeof than === "string" ? `“${than}”` : String(than);
}

/** A number with a point or a comma before its decimals; NaN for another text. */
function typedNumber(text: string): number {
  const trimmed = text.trim().replace("−", "-").replace(",", ".");
  return trimmed === "" ? Number.NaN : Number(trimmed);
}

/** A value as people type it; see {@link TypedCondition}. */
function typedValue(text: string): string | number | boolean {
  const trimmed = text.trim();
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  const number = typedNumber(trimmed);
  if (!Number.isNaN(number)) return number;
  return /^".*"$/.test(trimmed) ? trimmed.slice(1, -1) : trimmed;
}

function asTyped(value: string | number | boolean): string {
  if (typeof value === "number")
    return numberFormat({ useGrouping: false, maximumFractionDigits: 20 }).format(value);
  return typeof value === "string" && typedValue(value) !== value ? `"${value}"` : String(value);
}
