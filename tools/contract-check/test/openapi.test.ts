import { readFileSync } from "node:fs";
import { release } from "@devmesh/contracts/release";
import { describe, expect, test } from "@jest/globals";
import { Ajv2020 } from "ajv/dist/2020.js";

/** Rules of docs/openapi.json for those who read it and for generators of clients. */

interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly enum?: readonly string[];
  readonly example?: unknown;
}
interface Media {
  readonly schema: Schema;
  readonly example?: unknown;
}
interface Body {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, Media>>;
}
interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly parameters?: readonly { readonly name: string; readonly description?: string }[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}
interface Document {
  readonly info: { readonly version: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Body>>;
  };
}

const document: Document = JSON.parse(
  readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8"),
);
const { schemas, responses } = document.components;
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
// By reference each schema of the document is compiled once.
const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema(document, "document");

const nameIn = (reference: string) => reference.split("/").at(-1) ?? "";
const schemaAt = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (schemas[nameIn(schema.$ref)] ?? {});
const bodyAt = (body: Body): Body => (body.$ref === undefined ? body : (responses[nameIn(body.$ref)] ?? {}));

/** The members of a schema and of those within it, by path. */
function* membersOf(schema: Schema, path: string): Generator<readonly [string, Schema]> {
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    yield [`${path}.${name}`, member];
    yield* membersOf(member, `${path}.${name}`);
  }
  const { items, additionalProperties, anyOf = [] } = schema;
  const inner = [items, additionalProperties, ...anyOf].filter((one) => typeof one === "object");
  for (const one of inner) yield* membersOf(one, path);
}

/** A schema whose references name the document, since it is compiled on its own. */
const withReferencesOfDocument = (schema: Schema): Schema =>
  JSON.parse(JSON.stringify(schema), (key, value) => (key === "$ref" ? `document${value}` : value));

/** The bodies of an operation by status, or `request`, and media type. */
const bodiesOf = ({ requestBody, responses }: Operation) =>
  Object.entries({ request: requestBody ?? {}, ...responses }).flatMap(([at, body]) =>
    Object.entries(bodyAt(body).content ?? {}).map(([type, media]) => [`${at} ${type}`, media] as const),
  );

describe.each(Object.entries(schemas))("schema %s", (name, schema) => {
  const members = [...membersOf(schema, name)];

  test("and each of its members is described", () => {
    expect(schema.description).toMatch(/\w+/);
    for (const [path, member] of members) {
      const description = member.description ?? schemaAt(member).description ?? "";
      expect([path, description]).toEqual([path, expect.stringMatching(/\w\w+.*[.:]/)]);
    }
  });

  test("names the unit of each number, or what it counts", () => {
    const named = /milliseconds|\bseconds\b|bytes|number|code\b|most records|port\b/i;
    for (const [path, { type, description }] of members)
      if (type === "integer" || type === "number")
        expect([path, description]).toEqual([path, expect.stringMatching(named)]);
  });

  test("has no objects within it that have no name", () => {
    for (const [path, member] of members) expect([path, member.properties ?? null]).toEqual([path, null]);
  });
});

describe.each(operations.map((one) => [one.operationId, one] as const))("operation %s", (_, operation) => {
  test("describes each parameter, in full words", () => {
    for (const { name, description } of operation.parameters ?? [])
      expect([name, description]).toEqual([name, expect.stringMatching(/\w\w+.*\./)]);
  });

  test("has an example of each body that its schema accepts", () => {
    for (const [at, { schema, example = schemaAt(schema).example }] of bodiesOf(operation)) {
      const accepts = ajv.compile(withReferencesOfDocument(schema));
      expect([at, example]).toEqual([at, expect.anything()]);
      expect([at, accepts(example), accepts.errors ?? []]).toEqual([at, true, []]);
    }
  });

  test("has bodies with names: a schema, or a list of one", () => {
    for (const [at, { schema }] of bodiesOf(operation)) {
      const { type, properties, items, allOf } = schema;
      expect([at, properties === undefined || allOf !== undefined]).toEqual([at, true]);
      if (type === "array") expect([at, items?.$ref]).toEqual([at, expect.any(String)]);
    }
  });

  test("lists the reasons of each problem, as a component where other operations share it", () => {
    for (const [status, body] of Object.entries(operation.responses)) {
      if (Number(status) < 400) continue;
      const schema = bodyAt(body).content?.["application/problem+json"]?.schema;
      expect(schema?.allOf).toEqual([{ $ref: "#/components/schemas/Problem" }]);
      expect(schema?.properties?.reason?.enum?.length).toBeGreaterThan(0);
    }
    const inline = Object.entries(operation.responses).filter(
      ([status, { $ref }]) => Number(status) >= 400 && !$ref,
    );
    for (const [status, body] of inline) {
      const same = operations.filter(
        (other) => JSON.stringify(other.responses[status]) === JSON.stringify(body),
      );
      expect([status, same.map(({ operationId }) => operationId)]).toEqual([status, [operation.operationId]]);
    }
  });
});

test("the version is the release: that of all packages", () => {
  const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
  const { version } = JSON.parse(read("package.json"));
  expect([release, document.info.version]).toEqual([version, version]);
  expect(JSON.parse(read("clients/typescript/package.json")).version).toBe(version);
  expect(read("clients/python/pyproject.toml")).toContain(`\nversion = "${version}"\n`);
});

test("tags are described and come in the order of use, devices first", () => {
  const names = document.tags.map(({ name }) => name);
  expect(names.slice(0, 5)).toEqual(["Devices", "RPC", "Work", "Firmware", "Stored data"]);
  expect(document.tags.filter(({ description = "" }) => description === "")).toEqual([]);
  expect(new Set(operations.flatMap(({ tags }) => tags))).toEqual(new Set(names));
});
