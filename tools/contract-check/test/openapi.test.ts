import { readFileSync } from "node:fs";
import { release } from "@devmesh/contracts/release";
import { describe, expect, test } from "@jest/globals";
import { Ajv2020 } from "ajv/dist/2020.js";

/** Rules of docs/openapi.json for those who read it and for generators of clients. */

interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string;
  readonly format?: string;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
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
  readonly description?: string;
  readonly "x-reasons"?: readonly string[];
}
interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}
interface Document {
  readonly info: { readonly version: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Body>>;
  };
}

const document: Document = JSON.parse(
  readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8"),
);
const { schemas, responses } = document.components;
const operationsOf = (paths: Document["paths"]) =>
  Object.values(paths).flatMap((methods) => Object.values(methods));
const operations = operationsOf(document.paths);
const received = operationsOf(document.webhooks);
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

/** Parts of a schema without a name for which a generator must make a class: objects and unions. */
function* namelessIn(schema: Schema): Generator<Schema> {
  const { properties = {}, items, additionalProperties, anyOf = [], oneOf = [] } = schema;
  const inner = [...Object.values(properties), items, additionalProperties, ...anyOf, ...oneOf];
  for (const one of inner.filter((one) => typeof one === "object")) {
    const choices = (one.anyOf ?? one.oneOf ?? []).filter(({ type }) => type !== "null");
    if (one.properties !== undefined || choices.length > 1) yield one;
    yield* namelessIn(one);
  }
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

  test("has no objects and unions within it that have no name", () => {
    expect([...namelessIn(schema)]).toEqual([]);
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
      const { type, properties, items } = schema;
      expect([at, properties]).toEqual([at, undefined]);
      if (type === "array") expect([at, items?.$ref]).toEqual([at, expect.any(String)]);
    }
  });

  test("has parameters that are no unions", () => {
    for (const { name, schema } of operation.parameters ?? [])
      expect([name, [...namelessIn({ items: schema })]]).toEqual([name, []]);
  });

  test("has no time in the example of its request that passes", () => {
    const years = JSON.stringify(bodiesOf(operation).filter(([at]) => at.startsWith("request"))).matchAll(
      /"(\d{4})-\d\d-\d\dT/g,
    );
    for (const [, year] of years) expect(Number(year)).toBeGreaterThan(2090);
  });

  test("lists the reasons of each problem, as a component where other operations share it", () => {
    for (const [status, body] of Object.entries(operation.responses)) {
      if (Number(status) < 400) continue;
      const { content, description, "x-reasons": reasons = [] } = bodyAt(body);
      expect(content?.["application/problem+json"]?.schema).toEqual({ $ref: "#/components/schemas/Problem" });
      expect(reasons).not.toEqual([]);
      const listed = [...(description ?? "").matchAll(/^- `(\w+)`: \S/gm)].map(([, reason]) => reason);
      expect(listed).toEqual([...new Set(reasons)]);
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
  expect(new Set([...operations, ...received].flatMap(({ tags }) => tags))).toEqual(new Set(names));
});

describe("generators of clients", () => {
  test("find an id of each operation, also of those that a receiver of webhooks has", () => {
    const ids = [...operations, ...received].map(({ operationId }) => operationId);
    expect(ids).toEqual([...new Set(ids)].filter(Boolean));
  });

  test("write the operations of webhooks into no file of other operations", () => {
    const tags = new Set(operations.flatMap(({ tags }) => tags));
    expect(received.flatMap(({ tags }) => tags).filter((tag) => tags.has(tag))).toEqual([]);
  });

  test("make no two things of one name of schemas", () => {
    // Go's generator has a constructor NewX of each type X; files of types differ in more than case.
    const made = Object.keys(schemas).flatMap((name) => [name, `New${name}`].map((one) => one.toLowerCase()));
    expect(made.filter((name, place) => made.indexOf(name) !== place)).toEqual([]);
  });

  test("find one schema in all successes of an operation, unless it is any value", () => {
    for (const { operationId, responses } of operations) {
      const successes = Object.entries(responses).filter(([status]) => status.startsWith("2"));
      const [first, ...others] = successes.map(
        ([, body]) => bodyAt(body).content?.["application/json"]?.schema,
      );
      if (operationId.startsWith("call")) expect(schemaAt(first ?? {})).not.toHaveProperty("type");
      else for (const other of others) expect([operationId, other]).toEqual([operationId, first]);
    }
  });

  test("find no pattern with look-around, and no union with a list", () => {
    const refused: Schema[] = [];
    JSON.stringify(document, (_, value: Schema & { readonly pattern?: string }) => {
      const { pattern = "", anyOf = [], oneOf = [] } = value ?? {};
      const choices = [...anyOf, ...oneOf].filter(({ type }) => type !== "null");
      if (typeof pattern === "string" && pattern.includes("(?")) refused.push(value);
      if (choices.length > 1 && choices.some(({ type }) => type === "array")) refused.push(value);
      return value;
    });
    expect(refused).toEqual([]);
  });

  test("find the width of each number", () => {
    const narrow: Schema[] = [];
    JSON.stringify(document, (_, value: Schema) => {
      const { type, format, maximum = Number.POSITIVE_INFINITY } = value ?? {};
      const isWide = type === "integer" ? maximum > 2 ** 31 - 1 : type === "number";
      if (isWide && format !== (type === "integer" ? "int64" : "double")) narrow.push(value);
      return value;
    });
    expect(narrow).toEqual([]);
  });

  test("find no word twice in a list", () => {
    const twice: unknown[] = [];
    JSON.stringify(document, (key, value) => {
      const isList = ["enum", "required", "tags", "x-reasons"].includes(key) && Array.isArray(value);
      if (isList && new Set(value.map((one) => JSON.stringify(one))).size !== value.length) twice.push(value);
      return value;
    });
    expect(twice).toEqual([]);
  });
});
