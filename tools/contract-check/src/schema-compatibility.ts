import { isDeepStrictEqual } from "node:util";
import type { Json } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import { type Alternative, alternativesOf, resolve, type SchemaDocument } from "./alternatives.ts";
import type { JsonSchema } from "./json-schema.ts";

/** A change that the other end would notice; `pointer` leads into the value, not into the schema. */
export interface Break {
  readonly pointer: string;
  readonly problem: string;
}

/**
 * What a change of a schema breaks for those who use the released one. A `taken` value must be accepted as before and
 * mean the same, a `given` one must be what readers expect, and no member may disappear. Constraints that cannot be
 * compared, such as two patterns, count as incompatible.
 */
export function breaksOf(released: JsonSchema, current: JsonSchema, side: "taken" | "given"): Break[] {
  return new Comparison(released, current, side).compare(released, current, "");
}

class Comparison {
  readonly #released: SchemaDocument;
  readonly #current: SchemaDocument;
  readonly #taken: boolean;
  /** Pairs of definitions under comparison, for schemas that refer to themselves. */
  readonly #open = new Set<string>();

  constructor(released: SchemaDocument, current: SchemaDocument, side: "taken" | "given") {
    this.#released = released;
    this.#current = current;
    this.#taken = side === "taken";
  }

  compare(released: JsonSchema, current: JsonSchema, pointer: string): Break[] {
    const pair = `${released.$ref} ${current.$ref}`;
    const named = released.$ref !== undefined && current.$ref !== undefined;
    if (named && this.#open.has(pair)) return [];
    if (named) this.#open.add(pair);
    const before = alternativesOf(released, this.#released);
    const after = alternativesOf(current, this.#current);
    const [narrow, wide] = this.#taken ? [before, after] : [after, before];
    const breaks = narrow.flatMap((one) => this.#breaksWithin(one, wide, pointer));
    if (named) this.#open.delete(pair);
    return breaks;
  }

  /** Nothing when one of the alternatives covers `one`; else what the nearest of them lacks. */
  #breaksWithin(one: Alternative, wide: readonly Alternative[], pointer: string): Break[] {
    let nearest: Break[] | undefined;
    for (const other of wide) {
      const breaks = this.#breaksBetween(one, other, pointer);
      if (breaks === null) continue;
      if (breaks.length === 0) return [];
      if (nearest === undefined || breaks.length < nearest.length) nearest = breaks;
    }
    const problem = `${nameOf(one)} is ${this.#taken ? "accepted no more" : "new to readers"}`;
    return nearest ?? [{ pointer, problem }];
  }

  /** Null for alternatives of different kinds. */
  #breaksBetween(narrow: Alternative, wide: Alternative, pointer: string): Break[] | null {
    const rules = this.#ruleBreaks(narrow, wide, pointer);
    if (wide.kind === "any") return rules;
    if (narrow.kind === "value") return valueFits(narrow.value, wide) ? rules : null;
    if (narrow.kind !== wide.kind) return null;
    switch (narrow.kind) {
      case "string":
        return [
          ...rules,
          ...this.#boundBreaks(narrow.schema, wide.schema, stringBounds, pointer),
          ...this.#patternBreaks(narrow.schema, wide.schema, pointer),
        ];
      case "number":
        return [...rules, ...this.#boundBreaks(narrow.schema, wide.schema, numberBounds, pointer)];
      case "array":
        return [
          ...rules,
          ...this.#boundBreaks(narrow.schema, wide.schema, arrayBounds, pointer),
          ...this.#between(narrow.schema.items ?? {}, wide.schema.items ?? {}, `${pointer}/*`),
        ];
      case "object":
        return this.#objectBreaks(narrow.schema, wide.schema, pointer, rules);
    }
  }

  #between(narrow: JsonSchema, wide: JsonSchema, pointer: string): Break[] {
    return this.#taken ? this.compare(narrow, wide, pointer) : this.compare(wide, narrow, pointer);
  }

  #ruleBreaks({ schema: narrow }: Alternative, { schema: wide }: Alternative, pointer: string): Break[] {
    const kept = new Set(narrow["x-rules"]);
    return (wide["x-rules"] ?? [])
      .filter((rule) => !kept.has(rule))
      .map((rule) => ({
        pointer,
        problem: this.#taken ? `is refused now by the rule "${rule}"` : `is promised no more: "${rule}"`,
      }));
  }

  #boundBreaks(narrow: JsonSchema, wide: JsonSchema, bounds: readonly Bound[], pointer: string): Break[] {
    return bounds.flatMap(({ keyword, within }) => {
      const [inner, outer] = [narrow[keyword], wide[keyword]];
      if (outer === undefined || isDeepStrictEqual(inner, outer)) return [];
      if (inner !== undefined && within(inner, outer)) return [];
      const [before, after] = this.#taken ? [inner, outer] : [outer, inner];
      return [{ pointer, problem: `${keyword} ${wordsOf(before)} became ${wordsOf(after)}` }];
    });
  }

  /** Patterns cannot be compared in general: every pattern of the wide schema must be in the narrow one. */
  #patternBreaks(narrow: JsonSchema, wide: JsonSchema, pointer: string): Break[] {
    const kept = new Set(patternsOf(narrow));
    return patternsOf(wide)
      .filter((pattern) => !kept.has(pattern))
      .map((pattern) => ({
        pointer,
        problem: this.#taken ? `must match ${pattern} now` : `does not surely match ${pattern} any more`,
      }));
  }

  #objectBreaks(narrow: JsonSchema, wide: JsonSchema, pointer: string, rules: Break[]): Break[] | null {
    const [before, after] = this.#taken ? [narrow, wide] : [wide, narrow];
    if (isOtherVariant(before, after, this.#released, this.#current)) return null;
    const breaks = [...rules];
    const at = (name: string) => `${pointer}${pointerToken(name)}`;
    const always = new Set(narrow.required);
    for (const name of wide.required ?? []) {
      if (always.has(name)) continue;
      breaks.push({
        pointer: at(name),
        problem: this.#taken ? "is required now" : "is not always there any more",
      });
    }
    for (const [name, schema] of Object.entries(before.properties ?? {})) {
      const now = memberOf(after, name);
      if (now === undefined) breaks.push({ pointer: at(name), problem: "is gone" });
      else breaks.push(...this.compare(schema, now, at(name)), ...this.#defaultBreaks(schema, now, at(name)));
    }
    for (const [name, schema] of Object.entries(after.properties ?? {})) {
      if (memberDeclared(before, name)) continue;
      breaks.push(...this.#addedMemberBreaks(before, schema, at(name)));
    }
    return [
      ...breaks,
      ...this.#otherMemberBreaks(before, after, pointer),
      ...this.#nameBreaks(narrow, wide, pointer),
    ];
  }

  /** A caller that omits the member relies on its default. */
  #defaultBreaks(before: JsonSchema, after: JsonSchema, pointer: string): Break[] {
    const [was, is] = [resolve(before, this.#released).default, resolve(after, this.#current).default];
    if (!this.#taken || was === undefined || isDeepStrictEqual(was, is)) return [];
    return [{ pointer, problem: `left out it meant ${wordsOf(was)} and means ${wordsOf(is)} now` }];
  }

  #addedMemberBreaks(before: JsonSchema, added: JsonSchema, pointer: string): Break[] {
    const carried = otherMembers(before);
    if (carried === "refused") {
      return this.#taken ? [] : [{ pointer, problem: "is new, and readers refuse members they do not know" }];
    }
    return carried === "dropped" ? [] : this.compare(carried, added, pointer);
  }

  #otherMemberBreaks(before: JsonSchema, after: JsonSchema, pointer: string): Break[] {
    const [was, is] = [otherMembers(before), otherMembers(after)];
    if (typeof was === "object" && typeof is === "object") return this.compare(was, is, `${pointer}/*`);
    if (!this.#taken) {
      const refused = was === "refused" && typeof is === "object";
      const problem = "may hold any member now, and readers refuse those they do not know";
      return refused ? [{ pointer, problem }] : [];
    }
    if (was === is || was === "refused") return [];
    if (was === "dropped" && typeof is === "object") return this.compare({}, is, `${pointer}/*`);
    return [{ pointer, problem: `members that are not declared are ${is} now` }];
  }

  #nameBreaks(narrow: JsonSchema, wide: JsonSchema, pointer: string): Break[] {
    if (wide.propertyNames === undefined) return [];
    const carries = typeof otherMembers(narrow) === "object";
    const declared = Object.keys(narrow.properties ?? {}).filter((name) => !memberDeclared(wide, name));
    const names = carries ? (narrow.propertyNames ?? { type: "string" }) : { enum: declared };
    return this.#between(names, wide.propertyNames, `${pointer}/*`).map((one) => ({
      ...one,
      problem: `as a name: ${one.problem}`,
    }));
  }
}

/** A limit, and whether an inner one is within an outer one. */
interface Bound {
  readonly keyword: keyof JsonSchema;
  readonly within: (inner: unknown, outer: unknown) => boolean;
}

const atLeast = (inner: unknown, outer: unknown) => Number(inner) >= Number(outer);
const atMost = (inner: unknown, outer: unknown) => Number(inner) <= Number(outer);
const never = () => false;

const stringBounds: readonly Bound[] = [
  { keyword: "minLength", within: atLeast },
  { keyword: "maxLength", within: atMost },
  { keyword: "format", within: never },
];
const numberBounds: readonly Bound[] = [
  { keyword: "type", within: (inner) => inner === "integer" },
  { keyword: "minimum", within: atLeast },
  { keyword: "exclusiveMinimum", within: atLeast },
  { keyword: "maximum", within: atMost },
  { keyword: "exclusiveMaximum", within: atMost },
  { keyword: "multipleOf", within: never },
];
const arrayBounds: readonly Bound[] = [
  { keyword: "minItems", within: atLeast },
  { keyword: "maxItems", within: atMost },
];

/** Whether a fixed value is certainly accepted; formats and rules are not evaluated. */
function valueFits(value: Json, { kind, schema, ...rest }: Alternative): boolean {
  if (kind === "value") return "value" in rest && isDeepStrictEqual(value, rest.value);
  if (schema.format !== undefined || schema.allOf !== undefined || schema["x-rules"] !== undefined)
    return false;
  if (kind === "string") {
    if (typeof value !== "string") return false;
    const length = [...value].length;
    return (
      length >= (schema.minLength ?? 0) &&
      length <= (schema.maxLength ?? Number.POSITIVE_INFINITY) &&
      patternsOf(schema).every((pattern) => new RegExp(pattern, "u").test(value))
    );
  }
  if (kind !== "number" || typeof value !== "number") return false;
  return (
    (schema.type === "number" || Number.isInteger(value)) &&
    value >= (schema.minimum ?? Number.NEGATIVE_INFINITY) &&
    value > (schema.exclusiveMinimum ?? Number.NEGATIVE_INFINITY) &&
    value <= (schema.maximum ?? Number.POSITIVE_INFINITY) &&
    value < (schema.exclusiveMaximum ?? Number.POSITIVE_INFINITY) &&
    schema.multipleOf === undefined
  );
}

/** Several patterns are in an `allOf`, which holds nothing else. */
function patternsOf({ pattern, allOf = [] }: JsonSchema): string[] {
  return [pattern, ...allOf.map((one) => one.pattern)].filter((one) => one !== undefined);
}

/** Variants of a union differ in the constant of a member. */
function isOtherVariant(
  before: JsonSchema,
  after: JsonSchema,
  released: SchemaDocument,
  current: SchemaDocument,
): boolean {
  return Object.entries(before.properties ?? {}).some(([name, schema]) => {
    const other = after.properties?.[name];
    if (other === undefined) return false;
    const [was, is] = [resolve(schema, released).const, resolve(other, current).const];
    return was !== undefined && is !== undefined && !isDeepStrictEqual(was, is);
  });
}

/** Whether undeclared members are refused, dropped, or kept if they fit a schema. */
function otherMembers({ additionalProperties: others }: JsonSchema): "refused" | "dropped" | JsonSchema {
  if (others === undefined) return "dropped";
  if (others === false) return "refused";
  return others === true ? {} : others;
}

function memberDeclared({ properties = {} }: JsonSchema, name: string): boolean {
  return Object.hasOwn(properties, name);
}

function memberOf(schema: JsonSchema, name: string): JsonSchema | undefined {
  if (memberDeclared(schema, name)) return schema.properties?.[name];
  const others = otherMembers(schema);
  return typeof others === "object" ? others : undefined;
}

function nameOf(alternative: Alternative): string {
  if (alternative.kind === "value") return JSON.stringify(alternative.value);
  if (alternative.kind === "any") return "any value";
  const fixed = Object.entries(alternative.schema.properties ?? {}).flatMap(([name, { const: value }]) =>
    value === undefined ? [] : [`${name} ${JSON.stringify(value)}`],
  );
  const article = /^[aeiou]/.test(alternative.kind) ? "an" : "a";
  return `${article} ${alternative.kind}${fixed.length === 0 ? "" : ` with ${fixed.join(", ")}`}`;
}

function wordsOf(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}
