import { isDeepStrictEqual } from "node:util";
import type { Json } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import type { JsonSchema, TypeName } from "./json-schema.ts";

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
  return new SchemaComparison(released, current, side === "taken").compare(released, current, "");
}

class SchemaComparison {
  readonly #released: JsonSchema;
  readonly #current: JsonSchema;
  readonly #taken: boolean;
  /** Pairs of definitions under comparison, for schemas that refer to themselves. */
  readonly #open = new Set<string>();

  constructor(released: JsonSchema, current: JsonSchema, taken: boolean) {
    this.#released = released;
    this.#current = current;
    this.#taken = taken;
  }

  compare(released: JsonSchema, current: JsonSchema, pointer: string): Break[] {
    const pair = `${released.$ref} ${current.$ref}`;
    const named = released.$ref !== undefined && current.$ref !== undefined;
    if (named && this.#open.has(pair)) return [];
    if (named) this.#open.add(pair);
    const before = formsOf(released, this.#released);
    const after = formsOf(current, this.#current);
    const [narrow, wide] = this.#taken ? [before, after] : [after, before];
    const breaks = narrow.flatMap((one) => this.#breaksWithin(one, wide, pointer));
    if (named) this.#open.delete(pair);
    return breaks;
  }

  /** Nothing when one of the forms covers `one`; else what the nearest of them lacks. */
  #breaksWithin(one: Form, wide: readonly Form[], pointer: string): Break[] {
    const [nearest] = wide
      .flatMap((other) => this.#breaksBetween(one, other, pointer) ?? [])
      .toSorted((some, others) => some.length - others.length);
    const name = one.kind === "value" ? JSON.stringify(one.value) : `the type ${one.kind}`;
    const problem = `${name} is ${this.#taken ? "accepted no more" : "new to readers"}`;
    return nearest ?? [{ pointer, problem }];
  }

  /** The breaks, as one element; null for different kinds. */
  #breaksBetween(narrow: Form, wide: Form, pointer: string): [Break[]] | null {
    const kept = new Set(narrow.schema["x-rules"]);
    const breaks = (wide.schema["x-rules"] ?? [])
      .filter((rule) => !kept.has(rule))
      .map((rule) => ({ pointer, problem: `the rule "${rule}" is ${this.#taken ? "new" : "gone"}` }));
    if (wide.kind === "any") return [breaks];
    if (narrow.kind === "value") return fits(narrow.value, wide) ? [breaks] : null;
    if (narrow.kind !== wide.kind) return null;
    const [before, after] = this.#taken ? [narrow.schema, wide.schema] : [wide.schema, narrow.schema];
    breaks.push(...this.#limitBreaks(narrow.schema, wide.schema, pointer));
    if (narrow.kind === "array")
      breaks.push(...this.compare(before.items ?? {}, after.items ?? {}, `${pointer}/*`));
    if (narrow.kind === "object") {
      const always = new Set(narrow.schema.required);
      for (const name of wide.schema.required ?? []) {
        const problem = this.#taken ? "is required now" : "is not always there any more";
        if (!always.has(name)) breaks.push({ pointer: `${pointer}${pointerToken(name)}`, problem });
      }
      const names = { ...before.properties, ...after.properties };
      for (const name of [...Object.keys(names), undefined])
        breaks.push(...this.#memberBreaks(before, after, name, pointer));
    }
    return [breaks];
  }

  #limitBreaks(narrow: JsonSchema, wide: JsonSchema, pointer: string): Break[] {
    return limits.flatMap(([keyword, within]) => {
      const [inner, outer] = [narrow[keyword], wide[keyword]];
      if (outer === undefined || isDeepStrictEqual(inner, outer)) return [];
      if (inner !== undefined && within(inner, outer)) return [];
      const [before, after] = this.#taken ? [inner, outer] : [outer, inner];
      return [{ pointer, problem: `${keyword} ${wordsOf(before)} became ${wordsOf(after)}` }];
    });
  }

  /** Of one member of an object; without a name, of those that are not declared. */
  #memberBreaks(before: JsonSchema, after: JsonSchema, name: string | undefined, parent: string): Break[] {
    const [was, is] = [memberOf(before, name), memberOf(after, name)];
    const pointer = `${parent}${name === undefined ? "/*" : pointerToken(name)}`;
    if (typeof was === "object" && typeof is === "object")
      return [...this.compare(was, is, pointer), ...this.#defaultBreaks(was, is, pointer)];
    if (typeof was === "object")
      return this.#taken || name !== undefined ? [{ pointer, problem: "is gone" }] : [];
    if (typeof is === "object" && was === "dropped")
      return this.#taken && name === undefined ? this.compare({}, is, pointer) : [];
    if (typeof is === "object")
      return this.#taken ? [] : [{ pointer, problem: "is new, and readers refuse members they do not know" }];
    return this.#taken && was === "dropped" && is === "refused"
      ? [{ pointer, problem: "is refused now" }]
      : [];
  }

  /** A caller that omits the member relies on its default. */
  #defaultBreaks(before: JsonSchema, after: JsonSchema, pointer: string): Break[] {
    const [was, is] = [resolve(before, this.#released).default, resolve(after, this.#current).default];
    if (!this.#taken || was === undefined || isDeepStrictEqual(was, is)) return [];
    return [{ pointer, problem: `left out it meant ${wordsOf(was)} and means ${wordsOf(is)} now` }];
  }
}

/** One form of a value that fulfils a schema, without a union or reference at its top. */
type Form =
  | { readonly kind: "any" | TypeName; readonly schema: JsonSchema }
  | { readonly kind: "value"; readonly value: Json; readonly schema: JsonSchema };

/** All forms of values that fulfil a schema. Throws a `TypeError` where they cannot be separated. */
function formsOf(schema: JsonSchema, document: JsonSchema): Form[] {
  const { default: _, $defs: __, anyOf, oneOf, ...common } = resolve(schema, document);
  const union = anyOf ?? oneOf;
  if (union !== undefined) return union.flatMap((one) => formsOf(joined(one, common), document));
  const values = common.const === undefined ? common.enum : [common.const];
  if (values !== undefined) return values.map((value) => ({ kind: "value", value, schema: common }));
  if (common.type === undefined) return [{ kind: "any", schema: common }];
  return [common.type].flat().flatMap((type): Form[] => {
    if (type === "null") return [{ kind: "value", value: null, schema: common }];
    if (type === "boolean") return [true, false].map((value) => ({ kind: "value", value, schema: common }));
    return [{ kind: type === "integer" ? "number" : type, schema: { ...common, type } }];
  });
}

/** The schema itself, or the definition that it refers to, joined with the keywords beside the reference. */
function resolve(schema: JsonSchema, document: JsonSchema): JsonSchema {
  const { $ref, ...beside } = schema;
  if ($ref === undefined) return schema;
  const name = $ref.slice("#/$defs/".length).replaceAll("~1", "/").replaceAll("~0", "~");
  const definition = document.$defs?.[name];
  if (definition === undefined) throw new TypeError(`${$ref} is not defined`);
  return resolve(joined(definition, beside), document);
}

/** The conjunction of two schemas; they may share no keyword but rules. */
function joined(one: JsonSchema, other: JsonSchema): JsonSchema {
  const { default: _, "x-rules": more = [], ...rest } = other;
  const twice = Object.keys(rest).filter((keyword) => Object.hasOwn(one, keyword));
  if (twice.length > 0)
    throw new TypeError(`${twice.join(", ")} on both sides of a union or reference cannot be compared`);
  const rules = new Set([...(one["x-rules"] ?? []), ...more]);
  return { ...one, ...other, ...(rules.size > 0 && { "x-rules": [...rules] }) };
}

/** Keywords that limit a value, and whether an inner limit is within an outer one. */
const limits: readonly [keyof JsonSchema, (inner: unknown, outer: unknown) => boolean][] = [
  ["type", (inner) => inner === "integer"],
  ...(["minimum", "minLength", "minItems"] as const).map((keyword): (typeof limits)[number] => [
    keyword,
    (inner, outer) => Number(inner) >= Number(outer),
  ]),
  ...(["maximum", "maxLength", "maxItems"] as const).map((keyword): (typeof limits)[number] => [
    keyword,
    (inner, outer) => Number(inner) <= Number(outer),
  ]),
  ...(["pattern", "format", "propertyNames"] as const).map((keyword): (typeof limits)[number] => [
    keyword,
    () => false,
  ]),
];

/** Whether a fixed value is certainly accepted: limits and rules are not evaluated. */
function fits(value: Json, wide: Form): boolean {
  if (wide.kind === "value") return isDeepStrictEqual(value, wide.value);
  const { type, ...others } = wide.schema;
  return (
    (typeof value === type || (type === "integer" && Number.isInteger(value))) &&
    Object.keys(others).length === 0
  );
}

/** What happens to a member: its schema, or that of undeclared ones, or that it is refused or dropped. */
function memberOf(schema: JsonSchema, name: string | undefined): JsonSchema | "refused" | "dropped" {
  const { properties = {}, additionalProperties: others = "dropped" } = schema;
  const declared = name !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (declared !== undefined) return declared;
  if (others === false) return "refused";
  return others === true ? {} : others;
}

function wordsOf(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}
