import { z } from "zod";
import { JsonSchema } from "./json-schema.ts";

/**
 * How a schema stands in a surface: `taken` as those who send it must write it, `given` as those who read it may rely
 * on it. What zod can check but JSON Schema cannot say is named in `x-rules`. Throws a `TypeError` for what a surface
 * cannot hold.
 */
export function describeSchema(schema: z.ZodType, side: "taken" | "given"): JsonSchema {
  const { $schema: _, ...described } = z.toJSONSchema(schema, {
    io: side === "taken" ? "input" : "output",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      // Annotations: nothing on the wire depends on them.
      delete jsonSchema.description;
      delete jsonSchema.example;
      nameRules(zodSchema, jsonSchema);
      leaveOpen(zodSchema, jsonSchema);
      markUnknown(zodSchema, jsonSchema);
    },
  });
  const parsed = JsonSchema.safeParse(JSON.parse(JSON.stringify(described)));
  if (!parsed.success) {
    throw new TypeError("a contract surface cannot hold this schema", { cause: parsed.error });
  }
  return parsed.data;
}

type Node = z.core.$ZodTypes;
type JsonNode = z.core.JSONSchema.BaseSchema;

function nameRules(zodSchema: Node, jsonSchema: JsonNode): void {
  const rules = (zodSchema._zod.def.checks ?? []).flatMap((check) => {
    const { def } = check._zod;
    return def.check === "custom" ? [wordsOf(def)] : [];
  });
  if (rules.length > 0) jsonSchema["x-rules"] = rules;
}

function wordsOf({ error }: z.core.$ZodCheckDef): string {
  // The issue is not looked at by an error that is a sentence.
  const words = error?.({} as never);
  if (typeof words !== "string")
    throw new TypeError("a rule of a contract needs a sentence that refuses a breach");
  return words;
}

/**
 * A reader drops members it does not know unless it is declared strict: so a plain object is open on both sides,
 * while zod would close what is given, since it never gives more than is declared.
 */
function leaveOpen(zodSchema: Node, jsonSchema: JsonNode): void {
  const { def } = zodSchema._zod;
  if (def.type === "object" && def.catchall === undefined) delete jsonSchema.additionalProperties;
}

/** Not a keyword that a surface knows: what is left of it at the end is refused. */
const unknown = "x-unknown";
const opaque: ReadonlySet<string> = new Set([
  "custom",
  "transform",
  "date",
  "bigint",
  "map",
  "set",
  "symbol",
]);

/** `unrepresentable: "any"` would let a type that nobody described pass for any JSON; `meta` describes it. */
function markUnknown(zodSchema: Node, jsonSchema: JsonNode): void {
  if (z.globalRegistry.has(zodSchema)) delete jsonSchema[unknown];
  else if (opaque.has(zodSchema._zod.def.type)) jsonSchema[unknown] = true;
}
