import { z } from "zod";

/** A JSON Schema (2020-12), as far as it is shown. */
export interface Schema {
  readonly $ref?: string | undefined;
  readonly type?: string | readonly string[] | undefined;
  readonly description?: string | undefined;
  readonly format?: string | undefined;
  readonly pattern?: string | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly example?: unknown;
  readonly minLength?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
  readonly required?: readonly string[] | undefined;
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
  readonly additionalProperties?: Schema | boolean | undefined;
  readonly propertyNames?: Schema | undefined;
  readonly items?: Schema | undefined;
  readonly anyOf?: readonly Schema[] | undefined;
  readonly oneOf?: readonly Schema[] | undefined;
}

const Schema: z.ZodType<Schema> = z.lazy(() =>
  z.object({
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    description: z.string().optional(),
    format: z.string().optional(),
    pattern: z.string().optional(),
    enum: z.array(z.unknown()).optional(),
    const: z.unknown().optional(),
    default: z.unknown().optional(),
    example: z.unknown().optional(),
    minLength: z.number().optional(),
    maxLength: z.number().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    minItems: z.number().optional(),
    maxItems: z.number().optional(),
    required: z.array(z.string()).optional(),
    properties: z.record(z.string(), Schema).optional(),
    additionalProperties: z.union([z.boolean(), Schema]).optional(),
    propertyNames: Schema.optional(),
    items: Schema.optional(),
    anyOf: z.array(Schema).optional(),
    oneOf: z.array(Schema).optional(),
  }),
);

/** Bodies by media type. */
const Content = z.record(z.string(), z.object({ schema: Schema }));

const Parameter = z.object({
  in: z.enum(["path", "query", "header", "cookie"]),
  name: z.string(),
  required: z.boolean().default(false),
  description: z.string().optional(),
  schema: Schema,
});
export type Parameter = z.infer<typeof Parameter>;

const Response = z.object({
  description: z.string(),
  headers: z.record(z.string(), z.object({ description: z.string().default("") })).default({}),
  content: Content.default({}),
});

const DocumentedOperation = z.object({
  operationId: z.string(),
  tags: z.array(z.string()).default([]),
  summary: z.string().default(""),
  description: z.string().default(""),
  /** Empty for one that needs no key. */
  security: z.array(z.unknown()).optional(),
  parameters: z.array(Parameter).default([]),
  requestBody: z.object({ required: z.boolean().default(false), content: Content }).optional(),
  responses: z.record(z.string(), Response),
});

/** The OpenAPI 3.1 document of the public API, as far as it is shown. */
export const OpenApiDocument = z.object({
  info: z.object({ title: z.string(), version: z.string(), description: z.string().default("") }),
  tags: z.array(z.object({ name: z.string() })).default([]),
  paths: z.record(
    z.string(),
    z.partialRecord(z.enum(["get", "put", "post", "delete", "patch"]), DocumentedOperation),
  ),
  components: z.object({ schemas: z.record(z.string(), Schema).default({}) }),
});
export type OpenApiDocument = z.infer<typeof OpenApiDocument>;

/** Schemas that references lead to, by name. */
export type NamedSchemas = OpenApiDocument["components"]["schemas"];

/** One operation with where it is. */
export interface Operation extends z.infer<typeof DocumentedOperation> {
  /** In upper case. */
  readonly method: string;
  /** With `{name}` for a parameter. */
  readonly path: string;
}

/** The operations of a tag, in the order of the document. */
export interface OperationGroup {
  readonly tag: string;
  readonly operations: readonly Operation[];
}

/** All operations by their first tag, in the order of the tags. */
export function operationGroups({ tags, paths }: OpenApiDocument): OperationGroup[] {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  );
  const byTag = Map.groupBy(operations, (operation) => operation.tags[0] ?? "Others");
  const names = new Set([...tags.map(({ name }) => name), ...byTag.keys()]);
  return [...names].flatMap((tag) => {
    const ofTag = byTag.get(tag);
    return ofTag === undefined ? [] : [{ tag, operations: ofTag }];
  });
}
