import { type Json, JsonValue } from "@devmesh/contracts/model/json";
import { z } from "zod";

/**
 * The part of JSON Schema 2020-12 that a contract surface may use: what zod generates from the contracts. A schema
 * with any other keyword does not parse, since nothing here could compare it (ADR 15).
 */
export interface JsonSchema {
  readonly $ref?: string | undefined;
  readonly $defs?: Readonly<Record<string, JsonSchema>> | undefined;
  readonly type?: TypeName | readonly TypeName[] | undefined;
  readonly enum?: readonly Json[] | undefined;
  readonly const?: Json | undefined;
  readonly anyOf?: readonly JsonSchema[] | undefined;
  readonly oneOf?: readonly JsonSchema[] | undefined;
  readonly allOf?: readonly JsonSchema[] | undefined;
  readonly properties?: Readonly<Record<string, JsonSchema>> | undefined;
  readonly required?: readonly string[] | undefined;
  /** False refuses members that are not declared, a schema carries them on, absence means that they are dropped. */
  readonly additionalProperties?: JsonSchema | boolean | undefined;
  readonly propertyNames?: JsonSchema | undefined;
  readonly items?: JsonSchema | undefined;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly exclusiveMinimum?: number | undefined;
  readonly exclusiveMaximum?: number | undefined;
  readonly multipleOf?: number | undefined;
  readonly minLength?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly pattern?: string | undefined;
  readonly format?: string | undefined;
  /** What stands for a member that is left out. */
  readonly default?: Json | undefined;
  /** Rules that JSON Schema has no keyword for, each by the sentence that refuses a breach. */
  readonly "x-rules"?: readonly string[] | undefined;
}

const typeNames = ["string", "number", "integer", "boolean", "null", "array", "object"] as const;
export type TypeName = (typeof typeNames)[number];

const typeName = z.enum(typeNames);
const count = z.int().min(0).optional();
const bound = z.number().optional();

/** Parses a committed schema; refuses keywords that nothing here could compare. */
export const JsonSchema: z.ZodType<JsonSchema> = z.lazy(() =>
  z.strictObject({
    $ref: z.string().startsWith("#/$defs/").optional(),
    $defs: z.record(z.string(), JsonSchema).optional(),
    type: z.union([typeName, z.array(typeName)]).optional(),
    enum: z.array(JsonValue).optional(),
    const: JsonValue.optional(),
    anyOf: z.array(JsonSchema).optional(),
    oneOf: z.array(JsonSchema).optional(),
    allOf: z.array(JsonSchema).optional(),
    properties: z.record(z.string(), JsonSchema).optional(),
    required: z.array(z.string()).optional(),
    additionalProperties: z.union([z.boolean(), JsonSchema]).optional(),
    propertyNames: JsonSchema.optional(),
    items: JsonSchema.optional(),
    minItems: count,
    maxItems: count,
    minimum: bound,
    maximum: bound,
    exclusiveMinimum: bound,
    exclusiveMaximum: bound,
    multipleOf: bound,
    minLength: count,
    maxLength: count,
    pattern: z.string().optional(),
    format: z.string().optional(),
    default: JsonValue.optional(),
    "x-rules": z.array(z.string()).optional(),
  }),
);
