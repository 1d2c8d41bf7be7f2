import { JsonValue } from "@devmesh/contracts/model/json";
import { z } from "zod";

const typeNames = ["string", "number", "integer", "boolean", "null", "array", "object"] as const;
export type TypeName = (typeof typeNames)[number];

const typeName = z.enum(typeNames);
const count = z.int().min(0).optional();
const bound = z.number().optional();

type OptionalSchema = z.ZodOptional<typeof JsonSchema>;
type OptionalSchemas = z.ZodOptional<z.ZodArray<typeof JsonSchema>>;
type OptionalMembers = z.ZodOptional<z.ZodRecord<z.ZodString, typeof JsonSchema>>;

/**
 * The part of JSON Schema 2020-12 that zod generates from the contracts. Other keywords do not parse, since nothing
 * here could compare them (ADR 15).
 */
export const JsonSchema = z.strictObject({
  $ref: z.string().startsWith("#/$defs/").optional(),
  get $defs(): OptionalMembers {
    return z.record(z.string(), JsonSchema).optional();
  },
  type: z.union([typeName, z.array(typeName)]).optional(),
  enum: z.array(JsonValue).optional(),
  const: JsonValue.optional(),
  get anyOf(): OptionalSchemas {
    return z.array(JsonSchema).optional();
  },
  get oneOf(): OptionalSchemas {
    return z.array(JsonSchema).optional();
  },
  get properties(): OptionalMembers {
    return z.record(z.string(), JsonSchema).optional();
  },
  required: z.array(z.string()).optional(),
  /** False refuses undeclared members, a schema keeps them, absence drops them. */
  get additionalProperties(): z.ZodOptional<z.ZodUnion<readonly [z.ZodBoolean, typeof JsonSchema]>> {
    return z.union([z.boolean(), JsonSchema]).optional();
  },
  get propertyNames(): OptionalSchema {
    return JsonSchema.optional();
  },
  get items(): OptionalSchema {
    return JsonSchema.optional();
  },
  minItems: count,
  maxItems: count,
  minimum: bound,
  maximum: bound,
  minLength: count,
  maxLength: count,
  pattern: z.string().optional(),
  format: z.string().optional(),
  /** The value of a missing member. */
  default: JsonValue.optional(),
  /** Rules without a keyword, each by the message of its violation. */
  "x-rules": z.array(z.string()).optional(),
});
export type JsonSchema = z.infer<typeof JsonSchema>;
