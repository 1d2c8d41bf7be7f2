import { z } from "zod";
import {
  ConditionPointer,
  conditionSections,
  DeviceCondition,
  type ShadowValue,
} from "./device-condition.ts";
import { problemWords } from "./diagnostics.ts";
import { Duration } from "./duration.ts";
import { checkNumbers, isKept } from "./exact-numbers.ts";
import { isJsonObject, parseJson, repeatedMember } from "./json.ts";
import { membersOf } from "./json-pointer.ts";
import { ViolationList } from "./violation.ts";

/** Characters of the longest condition as text, and as JSON. */
export const maxConditionLength = 4_096;

/** Why a text is no condition, and where. */
export interface ConditionTextError {
  /** Index of the first character that is wrong; the length of the text where something is missing. */
  readonly at: number;
  /** Characters that are wrong, 0 where something is missing. */
  readonly length: number;
  /** What is wrong there, in words that may change. */
  readonly detail: string;
  /** What may be there, such as names of fields; empty where it is any text. */
  readonly allowed: readonly string[];
}

export type ParsedConditionText =
  | { readonly condition: DeviceCondition }
  | { readonly error: ConditionTextError };

type Draft = { -readonly [Member in keyof DeviceCondition]: DeviceCondition[Member] };

/** A part of a term: as it is in the text, and what it means. */
interface Token {
  readonly at: number;
  readonly end: number;
  readonly value: string;
  readonly isQuoted: boolean;
}

interface Field {
  /** What may be its value; none: any text. */
  readonly allowed: readonly string[];
  /** Adds a value to the condition; returns why it cannot. */
  readonly add: (draft: Draft, value: Token, isNegated: boolean) => string | undefined;
}

class TextError extends Error {
  readonly found: ConditionTextError;
  constructor(found: ConditionTextError) {
    super(found.detail);
    this.found = found;
  }
}

const fields = {
  label: {
    allowed: [],
    add(draft, { value }, isNegated) {
      draft.labels = withItem(draft.labels, isNegated ? "none" : "all", value);
      return undefined;
    },
  },
  version: {
    allowed: [],
    add(draft, { value, isQuoted }, isNegated) {
      const version = value === noVersion && !isQuoted ? null : value;
      draft.version = withItem(draft.version, isNegated ? "not_in" : "in", version);
      return undefined;
    },
  },
  silent: {
    allowed: ["1h", "24h", "7d"],
    add(draft, { value }, isNegated) {
      const duration = durationOf(value);
      if (duration === undefined) return "must be a duration such as 24h, 7d, 1d12h or PT24H";
      return setOnce(draft, isNegated ? "seen_within" : "silent_for", duration);
    },
  },
  problem: {
    allowed: ["any", ...problemWords],
    add(draft, { value }, isNegated) {
      const word = (["any", ...problemWords] as const).find((known) => known === value);
      if (word === undefined) return "must be `any`, or a name or reason of the diagnostics";
      draft.problem = withItem(draft.problem, isNegated ? "not_in" : "in", word);
      return undefined;
    },
  },
  online: {
    allowed: ["true", "false"],
    add(draft, { value }, isNegated) {
      if (value !== "true" && value !== "false") return "must be true or false";
      return setOnce(draft, "online", (value === "true") !== isNegated);
    },
  },
} as const satisfies Readonly<Record<string, Field>>;

/** The version of devices that report none; in quotes it is a version of that name. */
const noVersion = "none";

const pointerExamples = Object.keys(conditionSections).map((section) => `${section}/`);
const allowedFields = [...Object.keys(fields), ...pointerExamples];

/**
 * Parses a condition as one line of text, such as `label:site-1 -version:2.0.1 desired/app/mode:eco "Boiler pump"`
 * (api.md, Conditions).
 */
export function parseConditionText(text: string): ParsedConditionText {
  const draft: Draft = {};
  try {
    if (text.length > maxConditionLength) {
      const detail = `must have at most ${maxConditionLength} characters`;
      throw new TextError({
        at: maxConditionLength,
        length: text.length - maxConditionLength,
        detail,
        allowed: [],
      });
    }
    for (let at = skipBlanks(text, 0); at < text.length; at = skipBlanks(text, at))
      at = addTerm(draft, text, at);
    return { condition: draft };
  } catch (error) {
    if (error instanceof TextError) return { error: error.found };
    throw error;
  }
}

/** Adds the term that begins at `from`; returns the index after it. */
function addTerm(draft: Draft, text: string, from: number): number {
  const isNegated = text[from] === "-";
  const key = readToken(text, isNegated ? from + 1 : from, /[\s":]/);
  if (text[key.end] !== ":") {
    if (key.value === "") throw missing(key.at, "a word or a field must be here", allowedFields);
    draft.text = withItem(draft.text, isNegated ? "none" : "all", key.value);
    check(draft, key);
    return key.end;
  }
  const field = fieldOf(key);
  const value = readToken(text, key.end + 1, /[\s"]/);
  if (value.value === "" && !value.isQuoted) throw missing(value.at, "a value must be here", field.allowed);
  const refusal = field.add(draft, value, isNegated);
  if (refusal !== undefined) throw wrong(value, refusal, field.allowed);
  check(draft, value, field.allowed);
  return value.end;
}

function fieldOf(key: Token): Field {
  if (Object.hasOwn(fields, key.value)) return fields[key.value as keyof typeof fields];
  const pointer = pointerOf(key.value);
  if (pointer === undefined)
    throw wrong(
      key,
      `\`${key.value.slice(0, 64)}\` is no field; put a word with a colon into quotes`,
      allowedFields,
    );
  const [issue] = ConditionPointer.safeParse(pointer).error?.issues ?? [];
  if (issue !== undefined) throw wrong(key, issue.message, pointerExamples);
  return {
    allowed: [],
    add(draft, value, isNegated) {
      const expected = shadowValueOf(value);
      draft.shadow = [
        ...(draft.shadow ?? []),
        isNegated ? { pointer, is_not: expected } : { pointer, is: expected },
      ];
      return undefined;
    },
  };
}

/** The pointer that a key is short for; undefined for a key of another kind. */
function pointerOf(key: string): string | undefined {
  if (key.startsWith("/")) return key;
  const [section = "", ...members] = key.split("/");
  if (!Object.hasOwn(conditionSections, section)) return undefined;
  return [conditionSections[section as keyof typeof conditionSections], ...members].join("/");
}

const keywords: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null };
const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** What a value without quotes means: a number, true, false or null where it is one. */
function shadowValueOf({ value, isQuoted }: Pick<Token, "value" | "isQuoted">): ShadowValue {
  if (isQuoted) return value;
  if (Object.hasOwn(keywords, value)) return keywords[value] as boolean | null;
  // A shadow has numbers that no double holds as texts.
  return number.test(value) && isKept(value) ? Number(value) : value;
}

const shortDuration = /^(?=\d)(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?$/;
const durationWithShortForm = /^P(\d+W)?(\d+D)?(?:T(\d+H)?(\d+M)?(\d+S)?)?$/;

function durationOf(value: string): string | undefined {
  const [, weeks = "", days = "", ...times] = shortDuration.exec(value) ?? [];
  const time = times.join("");
  const long = `P${weeks}${days}${time === "" ? "" : "T"}${time}`.toUpperCase();
  const duration = long === "P" ? value : long;
  return Duration.safeParse(duration).success ? duration : undefined;
}

/** The short form of a duration; itself where it has none. */
function shortOf(duration: string): string {
  const parts = durationWithShortForm.exec(duration)?.slice(1);
  return parts === undefined ? duration : parts.join("").toLowerCase();
}

function withItem<const List extends string, T>(
  lists: { readonly [L in List]?: readonly T[] | undefined } | undefined,
  list: List,
  item: T,
) {
  return { ...lists, [list]: [...(lists?.[list] ?? []), item] } as { [L in List]?: T[] };
}

function setOnce<M extends "online" | "silent_for" | "seen_within">(
  draft: Draft,
  member: M,
  value: NonNullable<Draft[M]>,
): string | undefined {
  if (draft[member] !== undefined) return "must be given once";
  (draft as Record<M, Draft[M]>)[member] = value;
  return undefined;
}

/** The schema's bounds: the term that was added last exceeds one if any does. */
function check(draft: Draft, last: Token, allowed: readonly string[] = []): void {
  const checked = DeviceCondition.safeParse(draft);
  const [issue] = checked.error?.issues ?? [];
  if (issue !== undefined) throw wrong(last, issue.message, allowed);
}

const blank = /\s/;

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (at < text.length && blank.test(text.charAt(at))) at++;
  return at;
}

/** The token at `from`: in quotes, in which `\` is before a quote or itself, or up to one of `ends`. */
function readToken(text: string, from: number, ends: RegExp): Token {
  const isQuoted = text[from] === '"';
  let at = isQuoted ? from + 1 : from;
  let value = "";
  for (; at < text.length && !(isQuoted ? text[at] === '"' : ends.test(text.charAt(at))); at++) {
    if (isQuoted && text[at] === "\\" && at + 1 < text.length) at++;
    value += text.charAt(at);
  }
  if (isQuoted) {
    if (at >= text.length) throw missing(text.length, "the closing quote is missing", ['"']);
    at++;
  }
  const next = text.charAt(at);
  const isEnd = next === "" || blank.test(next) || (next === ":" && ends.test(":"));
  if (isEnd) return { at: from, end: at, value, isQuoted };
  const detail = isQuoted ? "a blank must follow the closing quote" : "a quote must begin a value";
  throw new TextError({ at, length: 1, detail, allowed: [] });
}

function wrong({ at, end }: Token, detail: string, allowed: readonly string[]): TextError {
  return new TextError({ at, length: end - at, detail, allowed });
}

function missing(at: number, detail: string, allowed: readonly string[]): TextError {
  return new TextError({ at, length: 0, detail, allowed });
}

/** Prints a condition as text: parsed again it is an equal one, but for lists that are empty. */
export function printConditionText(condition: DeviceCondition): string {
  const { text, labels, version, online, silent_for, seen_within, problem, shadow = [] } = condition;
  const versionText = (one: string | null) => (one === null ? noVersion : quoted(one, one === noVersion));
  return [
    ...(text?.all ?? []).map(printWord),
    ...(text?.none ?? []).map((word) => `-${printWord(word)}`),
    ...(labels?.all ?? []).map((label) => `label:${quoted(label)}`),
    ...(labels?.none ?? []).map((label) => `-label:${quoted(label)}`),
    ...(version?.in ?? []).map((one) => `version:${versionText(one)}`),
    ...(version?.not_in ?? []).map((one) => `-version:${versionText(one)}`),
    ...(online === undefined ? [] : [`online:${online}`]),
    ...(silent_for === undefined ? [] : [`silent:${shortOf(silent_for)}`]),
    ...(seen_within === undefined ? [] : [`-silent:${shortOf(seen_within)}`]),
    ...(problem?.in ?? []).map((word) => `problem:${word}`),
    ...(problem?.not_in ?? []).map((word) => `-problem:${word}`),
    ...shadow.map(({ pointer, is, is_not }) => {
      const key = printKey(pointer);
      return is === undefined ? `-${key}:${printValue(is_not ?? null)}` : `${key}:${printValue(is)}`;
    }),
  ].join(" ");
}

/** A text that begins with `{` would be JSON. */
function printWord(word: string): string {
  return quoted(word, /^[-{]/.test(word) || word.includes(":"));
}

function printKey(pointer: string): string {
  const short = pointer.replace(/^\/(state\/)?/, "");
  return quoted(short, short.includes(":"));
}

function printValue(value: ShadowValue): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return quoted(value, shadowValueOf({ value, isQuoted: false }) !== value);
}

function quoted(value: string, isAmbiguous = false): string {
  if (!isAmbiguous && value !== "" && !/[\s"]/.test(value)) return value;
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/** A condition as a query has it: as text, or as JSON, which begins with `{`. */
export const ConditionInput = z
  .string()
  .transform(readCondition)
  .meta({ type: "string", example: "label:site-1 -version:1.4.2 silent:24h" });

/**
 * A condition as a body may have it: an object, or what a query takes. A union reports the errors of the one member
 * that goes on after them: the second, which therefore reads objects, too.
 */
export const WrittenCondition = z
  .union([
    DeviceCondition.transform((condition, context) => {
      // An unknown member alone would let this member go on.
      if (context.issues.length > 0) context.addIssue("is no condition");
      return condition;
    }),
    z
      .custom<string>()
      .meta({ type: "string" })
      .transform(readCondition)
      .meta({ type: "string", example: "label:site-1 -version:1.4.2 silent:24h" }),
  ])
  .meta({
    id: "DeviceConditionInput",
    description: "A condition over devices, as an object or as one line of text.",
  });

function readCondition(written: unknown, context: z.RefinementCtx): DeviceCondition {
  const refuse = (message: string, path: PropertyKey[] = []) => {
    context.addIssue({ code: "custom", path, message, continue: true });
    return z.NEVER;
  };
  if (typeof written === "string" && !written.trimStart().startsWith("{")) {
    const parsed = parseConditionText(written);
    return "condition" in parsed ? parsed.condition : refuse(describeTextError(parsed.error));
  }
  const json = typeof written === "string" ? parseJson(written) : written;
  if (json === undefined) return refuse("is not JSON");
  if (typeof written === "string" && written.length > maxConditionLength)
    return refuse(`must have at most ${maxConditionLength} characters`);
  const repeated = typeof written === "string" ? repeatedMember(written) : null;
  if (repeated !== null) return refuse("must be given once", repeated);
  if (!isJsonObject(json)) return refuse("must be a text or an object");
  const numbers = new ViolationList();
  if (typeof written === "string") checkNumbers(written, numbers);
  for (const { pointer, detail } of numbers.list) refuse(detail, [...membersOf(pointer)]);
  if (numbers.any) return z.NEVER;
  const checked = DeviceCondition.safeParse(json);
  if (checked.success) return checked.data;
  for (const { path, message, ...issue } of checked.error.issues) {
    const unknown = issue.code === "unrecognized_keys" ? issue.keys : undefined;
    if (unknown === undefined) refuse(message, path);
    for (const key of unknown ?? []) refuse("is not known here", [...path, key]);
  }
  return z.NEVER;
}

/** An error as one sentence, with the place counted from 1. */
export function describeTextError({ at, detail, allowed }: ConditionTextError): string {
  const choice = allowed.length === 0 ? "" : `; allowed: ${allowed.join(", ")}`;
  return `at character ${at + 1}: ${detail}${choice}`;
}
