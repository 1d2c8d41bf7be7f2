import { z } from "zod";
import { JsonSchema } from "./json-schema.ts";

/**
 * The form of a schema in a surface: `taken` as senders must write it, `given` as readers may rely on it. Rules that
 * JSON Schema cannot express are named in `x-rules`. Throws a `TypeError` for what a surface cannot hold.
 */
export function describeSchema(schema: z.ZodType, side: "taken" | "given"): JsonSchema {
  const { $schema: _, ...described } = z.toJSONSchema(schema, {
    io: side === "taken" ? "input" : "output",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      // Annotations have no effect on the wire.
      for (const annotation of ["description", "example", "outputId"]) delete jsonSchema[annotation];
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
  // A fixed sentence ignores the issue.
  const words = error?.({} as never);
  if (typeof words !== "string")
    throw new TypeError("a rule of a contract needs a sentence that refuses a breach");
  return words;
}

/** Readers drop unknown members of a plain object, so it is open on both sides; zod would close what is given. */
function leaveOpen(zodSchema: Node, jsonSchema: JsonNode): void {
  const { def } = zodSchema._zod;
  if (def.type === "object" && def.catchall === undefined) delete jsonSchema.additionalProperties;
}

/** No keyword of a surface: a schema that still has it is refused. */
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

/** `unrepresentable: "any"` makes an undescribed type accept any JSON; `meta` describes it. */
function markUnknown(zodSchema: Node, jsonSchema: JsonNode): void {
  if (z.globalRegistry.has(zodSchema)) delete jsonSchema[unknown];
  else if (opaque.has(zodSchema._zod.def.type)) jsonSchema[unknown] = true;
}
