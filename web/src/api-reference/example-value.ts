import type { Json } from "@devmesh/contracts/model/json";
import type { NamedSchemas, Schema } from "./openapi-document.ts";
import { alternatives, resolve } from "./schema-description.ts";

/** Levels below which only what is required is filled in: schemas can contain themselves. */
const fullDepth = 4;

/** A value that a schema may allow, with each member: a beginning for who writes a body. */
export function exampleValue(schema: Schema, named: NamedSchemas, depth = 0): Json {
  const resolved = resolve(schema, named);
  const [first = {}] = alternatives(resolved).of;
  if (first !== resolved) return exampleValue(first, named, depth);
  const type = typeof resolved.type === "string" ? resolved.type : resolved.type?.[0];
  // A default is mostly empty, which shows nothing of what can stand there.
  if (type === "array" && resolved.items?.example !== undefined) return [exampleValue(resolved.items, named)];
  const given = resolved.example ?? resolved.const ?? resolved.default ?? resolved.enum?.[0];
  // The document came as JSON.
  if (given !== undefined) return given as Json;
  if (resolved.properties !== undefined) {
    const { properties, required = [] } = resolved;
    return Object.fromEntries(
      Object.entries(properties)
        .filter(([name]) => depth < fullDepth || required.includes(name))
        .map(([name, member]) => [name, exampleValue(member, named, depth + 1)]),
    );
  }
  switch (type) {
    case "string":
      return resolved.format === "date-time" ? "2026-01-31T12:00:00.000Z" : "";
    case "integer":
    case "number":
      return Math.max(0, resolved.minimum ?? 0);
    case "boolean":
      return false;
    case "array":
      return [];
    case "null":
      return null;
    default:
      return {};
  }
}
