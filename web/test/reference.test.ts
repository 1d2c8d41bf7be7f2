import { readFile } from "node:fs/promises";
import { api } from "@devmesh/contracts/rest/api";
import { expect, test } from "@jest/globals";
import { createApiClient } from "../src/api/api-client.ts";
import { UnexpectedAnswer } from "../src/api/api-problem.ts";
import { findOperation, readDocument, resolvedPart } from "../src/features/reference/read-document.ts";
import { sendJson, startHttpServer } from "./http-server.ts";

const { signal } = new AbortController();
const published = JSON.parse(await readFile(new URL("../../docs/openapi.json", import.meta.url), "utf8"));

test("the reference has each operation of the API below its tag", async () => {
  await using server = await startHttpServer((_request, response) => sendJson(response, 200, published));
  const document = await readDocument(createApiClient({ origin: server.origin, key: "mk_1" }), signal);
  for (const [operationId, route] of Object.entries(api))
    expect(findOperation(document, operationId)?.tags).toEqual([route.tag]);
  expect(findOperation(document, "invented")).toBeUndefined();
  expect(document.components).toEqual(published.components);
});

test("a document of another form is reported", async () => {
  await using server = await startHttpServer((_request, response) => sendJson(response, 200, { paths: [] }));
  const read = readDocument(createApiClient({ origin: server.origin, key: "mk_1" }), signal);
  await expect(read).rejects.toBeInstanceOf(UnexpectedAnswer);
});

test("references are resolved, except that of a schema to itself", () => {
  const Tree = { type: "object", properties: { below: { $ref: "#/components/schemas/Tree" } } };
  const body = { $ref: "#/components/schemas/Tree", description: "A tree." };
  const document = { paths: {}, components: { schemas: { Tree } }, bodies: [body] };
  expect(resolvedPart(document, ["bodies"])).toEqual([{ ...Tree, description: "A tree." }]);
  expect(resolvedPart(document, ["missing", "path"])).toBeUndefined();
});
