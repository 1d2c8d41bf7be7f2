import type { JsonObject } from "@devmesh/contracts/model/json";
import { z } from "zod";

/** The schema of a payload in AsyncAPI: `input` as a sender must write it, `output` as a receiver may rely on it. */
export function schemaOf(
  payload: z.ZodType,
  io: "input" | "output",
  /** Gets the named schemas within it. */
  schemas: Record<string, unknown>,
): object {
  const described = z.toJSONSchema(payload, {
    target: "draft-7",
    io,
    unrepresentable: "any",
    // What is sent may gain members, which receivers must accept.
    override({ zodSchema: { _zod }, jsonSchema }) {
      if (io === "output" && _zod.def.type === "object" && _zod.def.catchall === undefined)
        delete jsonSchema.additionalProperties;
    },
  });
  let text = JSON.stringify(described);
  for (const [name, { outputId = name }] of Object.entries(described.definitions ?? {}))
    text = text.replaceAll(`"#/definitions/${name}"`, `"#/components/schemas/${outputId}"`);
  const { $schema: _, definitions = {}, ...schema } = JSON.parse(text);
  for (const [name, { outputId = name, ...definition }] of Object.entries<JsonObject>(definitions))
    schemas[String(outputId)] = definition;
  return schema;
}
