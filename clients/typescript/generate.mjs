import { readFile, writeFile } from "node:fs/promises";
import openapiTypescript, { astToString } from "openapi-typescript";

// Writes src/schema.ts, the types of docs/openapi.json, and src/routes.ts, its methods and paths. JavaScript, because
// `npm run clients` runs on any Node.

const text = await readFile(new URL("../../docs/openapi.json", import.meta.url), "utf8");
const document = JSON.parse(text, (name, value) => (name === "example" ? undefined : value));
// A body that is no JSON is sent by a method of src/client.ts.
for (const [path, operations] of Object.entries(document.paths))
  for (const [method, { requestBody }] of Object.entries(operations))
    if (requestBody && !requestBody.content["application/json"]) delete document.paths[path][method];
// A member of a body that has a default may be left out; answers list theirs as required.
const types = astToString(await openapiTypescript(document, { defaultNonNullable: false }));
await writeFile(new URL("src/schema.ts", import.meta.url), types);

const routes = Object.entries(document.paths).flatMap(([path, operations]) =>
  Object.entries(operations).map(([method, { operationId }]) => [operationId, [method.toUpperCase(), path]]),
);
const table = JSON.stringify(Object.fromEntries(routes), undefined, 2);
await writeFile(
  new URL("src/routes.ts", import.meta.url),
  `/** Method and path of each operation. */\nexport const routes = ${table} as const;\n`,
);
