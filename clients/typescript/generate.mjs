import { readFile, writeFile } from "node:fs/promises";
import openapiTypescript, { astToString } from "openapi-typescript";

// Writes src/schema.ts, the types of docs/openapi.json. JavaScript, because `npm run clients` runs on any Node.

const text = await readFile(new URL("../../docs/openapi.json", import.meta.url), "utf8");
const document = JSON.parse(text, (name, value) => (name === "example" ? undefined : value));
const types = astToString(await openapiTypescript(document));
await writeFile(new URL("src/schema.ts", import.meta.url), types);
