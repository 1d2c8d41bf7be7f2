import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";
import { expect, test } from "@jest/globals";

const text = readFileSync(new URL("../../../docs/asyncapi.json", import.meta.url), "utf8");

/** Paths and messages of what is wrong. It says of each version but the newest that there is a newer one. */
async function problemsOf(document: string): Promise<string[]> {
  const { diagnostics } = await new Parser().parse(document);
  return diagnostics
    .filter(({ code }) => code !== "asyncapi-latest-version")
    .map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test("the document of topics is valid AsyncAPI", async () => {
  expect(await problemsOf(text)).toEqual([]);
});

test("a channel or a message that there is not would be found", async () => {
  const wrong = text
    .replace('"#/channels/call"', '"#/channels/none"')
    .replace("messages/event", "messages/none");
  expect((await problemsOf(wrong)).join()).toMatch(/none/);
});
