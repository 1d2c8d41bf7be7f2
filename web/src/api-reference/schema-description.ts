import type { NamedSchemas, Schema } from "./openapi-document.ts";

/** A rule that a value keeps, as in "one of" `asc, desc`. */
interface Rule {
  readonly text: string;
  /** What is to be read literally; null where the text says all. */
  readonly code: string | null;
}

/** A schema in words. */
export interface SchemaDescription {
  /** As in "string or null", "array of Device". */
  readonly type: string;
  readonly description: string | null;
  readonly rules: readonly Rule[];
  /** Of an object, or of the objects in an array. */
  readonly members: readonly MemberDescription[];
  /** What it can be, where that is more than one thing beside null. */
  readonly variants: readonly SchemaDescription[];
}

/** A member of an object; `name` is null for members of any name. */
export interface MemberDescription {
  readonly name: string | null;
  readonly required: boolean;
  readonly schema: SchemaDescription;
}

/** Says in words what a schema allows. A schema within itself is named, not repeated. */
export function describeSchema(schema: Schema, named: NamedSchemas): SchemaDescription {
  return describe(schema, named, []);
}

/** What a reference leads to, with what stands beside the reference; itself for any other schema. */
export function resolve(schema: Schema, named: NamedSchemas): Schema {
  const name = nameOf(schema);
  const target = name === null ? undefined : named[name];
  if (target === undefined) return schema;
  const { $ref: _, ...beside } = schema;
  const given = Object.fromEntries(Object.entries(beside).filter(([, value]) => value !== undefined));
  return { ...resolve(target, named), ...given };
}

/** The schemas that a value can have one of; null is told apart. */
export function alternatives(schema: Schema): { readonly of: readonly Schema[]; readonly nullable: boolean } {
  const all = schema.anyOf ?? schema.oneOf ?? [schema];
  const of = all.filter(({ type }) => type !== "null");
  return { of, nullable: of.length < all.length };
}

function describe(schema: Schema, named: NamedSchemas, within: readonly string[]): SchemaDescription {
  const name = nameOf(schema);
  const repeated = name !== null && within.includes(name);
  const path = name === null ? within : [...within, name];
  const resolved = resolve(schema, named);
  const { of, nullable } = alternatives(resolved);
  const [only] = of;
  const description = resolved.description ?? null;
  if (of.length > 1) {
    const variants = of.map((each) => describe(each, named, path));
    const types = [...new Set(variants.map(({ type }) => type)), ...(nullable ? ["null"] : [])];
    return { type: name ?? types.join(" or "), description, rules: rulesOf(resolved), members: [], variants };
  }
  if (only !== undefined && only !== resolved) {
    const inner = describe(only, named, path);
    return {
      ...inner,
      type: nullable ? `${inner.type} or null` : inner.type,
      description: description ?? inner.description,
      rules: [...inner.rules, ...rulesOf(resolved)],
    };
  }
  if (typesOf(resolved).includes("array")) {
    const items = describe(resolved.items ?? {}, named, path);
    const type = `array of ${items.type}`;
    return { ...items, type, description, rules: [...rulesOf(resolved), ...items.rules.map(ofItems)] };
  }
  return {
    type: name ?? typeText(resolved),
    description,
    rules: rulesOf(resolved),
    members: repeated ? [] : membersOf(resolved, named, path),
    variants: [],
  };
}

function membersOf(schema: Schema, named: NamedSchemas, within: readonly string[]): MemberDescription[] {
  const { properties = {}, additionalProperties, required = [] } = schema;
  const members: MemberDescription[] = Object.entries(properties).map(([name, member]) => ({
    name,
    required: required.includes(name),
    schema: describe(member, named, within),
  }));
  if (typeof additionalProperties === "object" && Object.keys(additionalProperties).length > 0)
    members.push({ name: null, required: false, schema: describe(additionalProperties, named, within) });
  return members;
}

function typeText(schema: Schema): string {
  const types = typesOf(schema);
  const text = types.length > 0 ? types.join(" or ") : "any JSON value";
  return schema.format === undefined ? text : `${text} (${schema.format})`;
}

/** The types of a schema; what says none but has members is an object. */
function typesOf({ type, properties, enum: values, const: value }: Schema): readonly string[] {
  if (typeof type === "string") return [type];
  if (type !== undefined) return type;
  if (properties !== undefined) return ["object"];
  const constants = values ?? (value === undefined ? [] : [value]);
  return [...new Set(constants.map((each) => (each === null ? "null" : typeof each)))];
}

function rulesOf(schema: Schema): Rule[] {
  const rules: Rule[] = [];
  const say = (text: string | null, code: string | null = null) => {
    if (text !== null) rules.push({ text, code });
  };
  const types = typesOf(schema);
  if (schema.const !== undefined) say("always", JSON.stringify(schema.const));
  if (schema.enum !== undefined) say("one of", schema.enum.map((value) => JSON.stringify(value)).join(", "));
  say(rangeText(schema.minLength, schema.maxLength, "characters"));
  say(rangeText(schema.minimum, schema.maximum, ""));
  say(rangeText(schema.minItems, schema.maxItems, "items"));
  // Numbers in a URL have a pattern, too, which says no more than their type does.
  if (schema.pattern !== undefined && types.includes("string")) say("matches", schema.pattern);
  if (schema.propertyNames?.pattern !== undefined) say("names match", schema.propertyNames.pattern);
  if (schema.default !== undefined) say("by default", JSON.stringify(schema.default));
  if (schema.example !== undefined) say("for example", JSON.stringify(schema.example));
  return rules;
}

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 20 });

function rangeText(min: number | undefined, max: number | undefined, unit: string): string | null {
  const least = min === undefined || min === Number.MIN_SAFE_INTEGER ? null : numbers.format(min);
  const most = max === undefined || max === Number.MAX_SAFE_INTEGER ? null : numbers.format(max);
  const range =
    least !== null && most !== null
      ? `${least} to ${most}`
      : least !== null
        ? `at least ${least}`
        : most !== null
          ? `at most ${most}`
          : null;
  return range === null ? null : `${range} ${unit}`.trim();
}

function ofItems({ text, code }: Rule): Rule {
  return { text: `each: ${text}`, code };
}

function nameOf({ $ref }: Schema): string | null {
  return $ref === undefined ? null : $ref.slice($ref.lastIndexOf("/") + 1);
}
