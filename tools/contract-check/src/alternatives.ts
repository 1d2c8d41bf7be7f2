import type { Json } from "@devmesh/contracts/model/json";
import type { JsonSchema, TypeName } from "./json-schema.ts";

/** The schema with the definitions that others refer to. */
export type SchemaDocument = Pick<JsonSchema, "$defs">;

/** One form of a value that fulfils a schema, without a union or reference at its top. */
export type Alternative =
  | { readonly kind: "any" | "string" | "number" | "array" | "object"; readonly schema: JsonSchema }
  | { readonly kind: "value"; readonly value: Json; readonly schema: JsonSchema };

/** All forms of values that fulfil a schema. Throws a `TypeError` where they cannot be separated. */
export function alternativesOf(schema: JsonSchema, document: SchemaDocument): Alternative[] {
  const { default: _, $defs: __, ...resolved } = resolve(schema, document);
  const { anyOf, oneOf, ...common } = resolved;
  const union = anyOf ?? oneOf;
  if (union !== undefined) {
    if (anyOf !== undefined && oneOf !== undefined)
      throw new TypeError("a union in two forms cannot be compared");
    return union.flatMap((one) => alternativesOf(joined(one, common), document));
  }
  return ofOneForm(resolved);
}

/** The schema itself, or the definition that it refers to, joined with the keywords beside the reference. */
export function resolve(schema: JsonSchema, document: SchemaDocument): JsonSchema {
  const { $ref, ...beside } = schema;
  if ($ref === undefined) return schema;
  const name = $ref.slice("#/$defs/".length).replaceAll("~1", "/").replaceAll("~0", "~");
  const definition = document.$defs?.[name];
  if (definition === undefined) throw new TypeError(`${$ref} is not defined`);
  return resolve(joined(definition, beside), document);
}

/** The conjunction of two schemas; they may share no keyword but rules. */
function joined(one: JsonSchema, other: JsonSchema): JsonSchema {
  const twice = Object.keys(other).filter(
    (keyword) => keyword !== "default" && keyword !== "x-rules" && Object.hasOwn(one, keyword),
  );
  if (twice.length > 0) {
    throw new TypeError(`${twice.join(", ")} on both sides of a union or reference cannot be compared`);
  }
  const rules = new Set([...(one["x-rules"] ?? []), ...(other["x-rules"] ?? [])]);
  return { ...one, ...other, ...(rules.size > 0 && { "x-rules": [...rules] }) };
}

function ofOneForm(schema: JsonSchema): Alternative[] {
  const values = schema.const === undefined ? schema.enum : [schema.const];
  if (values !== undefined) return values.map((value) => ({ kind: "value", value, schema }));
  if (schema.type === undefined) {
    if (Object.keys(schema).some((keyword) => keyword !== "x-rules")) {
      throw new TypeError(`${Object.keys(schema).join(", ")} without a type cannot be compared`);
    }
    return [{ kind: "any", schema }];
  }
  const types: readonly TypeName[] = typeof schema.type === "string" ? [schema.type] : schema.type;
  return types.flatMap((type) => ofType(type, { ...schema, type }));
}

function ofType(type: TypeName, schema: JsonSchema): Alternative[] {
  const onlyPatterns = schema.allOf?.every((one) => Object.keys(one).join() === "pattern") ?? true;
  if (!onlyPatterns || (schema.allOf !== undefined && type !== "string")) {
    throw new TypeError("an intersection cannot be compared");
  }
  switch (type) {
    case "null":
      return [{ kind: "value", value: null, schema }];
    case "boolean":
      return [true, false].map((value) => ({ kind: "value", value, schema }));
    case "integer":
    case "number":
      return [{ kind: "number", schema }];
    case "string":
    case "array":
    case "object":
      return [{ kind: type, schema }];
  }
}
