import { readFile } from "node:fs/promises";
import { api } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { describe, expect, test } from "@jest/globals";
import { exampleValue } from "../src/api-reference/example-value.ts";
import { OpenApiDocument, operationGroups, type Schema } from "../src/api-reference/openapi-document.ts";
import { proseBlocks } from "../src/api-reference/prose-blocks.ts";
import { describeSchema, type SchemaDescription } from "../src/api-reference/schema-description.ts";

/** The document as the gateway serves it. */
const document = OpenApiDocument.parse(
  JSON.parse(await readFile(new URL("../../docs/openapi.json", import.meta.url), "utf8")),
);
const named = document.components.schemas;
const operations = operationGroups(document).flatMap((group) => group.operations);
const routes: Readonly<Record<string, RouteDeclaration>> = api;

describe("the reference", () => {
  test("has each operation of the API once, below its tag, with method and path", () => {
    expect(operations.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(routes).sort());
    for (const { operationId, method, path, tags } of operations) {
      const route = routes[operationId];
      expect([method, path]).toEqual([
        route?.method.toUpperCase(),
        route?.path.replaceAll(/:(\w+)/g, "{$1}"),
      ]);
      expect(tags).toEqual([route?.tag]);
    }
    const [first] = operationGroups(document);
    expect(first?.tag).toBe("Customer registration");
  });

  test.each(
    operations.flatMap(({ operationId, requestBody }) => {
      const schema = requestBody?.content["application/json"]?.schema;
      return schema === undefined ? [] : [[operationId, schema] as const];
    }),
  )("fills in a body for %s that the API accepts", (operationId, schema) => {
    const parsed = routes[operationId]?.body?.schema.safeParse(exampleValue(schema, named));
    expect(parsed?.error?.issues ?? []).toEqual([]);
  });
});

describe("a schema", () => {
  const inWords = (schema: Schema) => describeSchema(schema, named);
  const rules = ({ rules }: SchemaDescription) =>
    rules.map(({ text, code }) => (code === null ? text : `${text} ${code}`));

  test("is told with its type and rules", () => {
    const text = inWords({ type: "string", minLength: 1, maxLength: 9, pattern: "^a", example: "ab" });
    expect(text.type).toBe("string");
    expect(rules(text)).toEqual(["1 to 9 characters", "matches ^a", 'for example "ab"']);
    const number = inWords({
      type: "integer",
      pattern: "^-?\\d+$",
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
    });
    expect([number.type, rules(number)]).toEqual(["integer", ["at least 0"]]);
    const choice = inWords({ enum: ["asc", "desc"], default: "asc" });
    expect([choice.type, rules(choice)]).toEqual(["string", ['one of "asc", "desc"', 'by default "asc"']]);
    expect(inWords({ type: "string", format: "date-time" }).type).toBe("string (date-time)");
    expect(inWords({}).type).toBe("any JSON value");
  });

  test("is told as one that may be null, one of an array, or one of several", () => {
    expect(inWords({ anyOf: [{ type: "string" }, { type: "null" }] }).type).toBe("string or null");
    const array = inWords({ type: "array", maxItems: 5, items: { type: "string", maxLength: 3 } });
    expect([array.type, rules(array)]).toEqual([
      "array of string",
      ["at most 5 items", "each: at most 3 characters"],
    ]);
    const several = inWords({ oneOf: [{ type: "object" }, { type: "array", items: {} }] });
    expect(several.type).toBe("object or array of any JSON value");
    expect(several.variants).toHaveLength(2);
  });

  test("shows the members of what it refers to, and which must be there", () => {
    const { type, members } = inWords({ $ref: "#/components/schemas/Device" });
    expect(type).toBe("Device");
    const byName = new Map(members.map((member) => [member.name, member]));
    expect(byName.get("id")).toMatchObject({ required: true, schema: { type: "string" } });
    expect(byName.get("shadow")?.schema.members.map(({ name }) => name)).toContain("version");
    const list = inWords({ type: "array", items: { $ref: "#/components/schemas/Device" } });
    expect([list.type, list.members.length]).toEqual(["array of Device", members.length]);
  });

  test("that contains itself ends", () => {
    const tree: Schema = {
      type: "object",
      properties: { children: { type: "array", items: { $ref: "#/components/schemas/Tree" } } },
    };
    const described = describeSchema({ $ref: "#/components/schemas/Tree" }, { Tree: tree });
    expect(described.members[0]?.schema).toMatchObject({ type: "array of Tree", members: [] });
    expect(() => exampleValue({ $ref: "#/components/schemas/Tree" }, { Tree: tree })).not.toThrow();
  });

  test("that refers to nothing known is named", () => {
    expect(inWords({ $ref: "#/components/schemas/Unknown" })).toMatchObject({ type: "Unknown", members: [] });
  });
});

describe("a description", () => {
  test("is read into paragraphs and lists, with code and links; all else stays text", () => {
    expect(proseBlocks("Send `a`;\nsee [all](/docs/errors).\n\n- `x`: one\n- two")).toEqual([
      {
        kind: "paragraph",
        lines: [
          [
            { kind: "text", text: "Send " },
            { kind: "code", text: "a" },
            { kind: "text", text: "; see " },
            { kind: "link", text: "all", href: "/docs/errors" },
            { kind: "text", text: "." },
          ],
        ],
      },
      {
        kind: "list",
        lines: [
          [
            { kind: "code", text: "x" },
            { kind: "text", text: ": one" },
          ],
          [{ kind: "text", text: "two" }],
        ],
      },
    ]);
    const text = "[no](javascript:alert(1)) <b>*bold*</b>";
    expect(proseBlocks(text)).toEqual([{ kind: "paragraph", lines: [[{ kind: "text", text }]] }]);
    expect(proseBlocks("")).toEqual([]);
  });
});
