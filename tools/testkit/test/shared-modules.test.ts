import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { expect, test } from "@jest/globals";
import { z } from "zod";
import { tempFolder } from "../src/temp-folder.ts";

const Result = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      assertionResults: z.array(
        z.object({ title: z.string(), status: z.string(), failureMessages: z.array(z.string()) }),
      ),
    }),
  ),
});

/** Counts the files that evaluated it, or share it. */
const counter = "export const files: string[] = [];";

const testFile = (own: string) => `${own}
import { expect, jest, test } from "@jest/globals";
import { files as ofPackage } from "../src/counter.ts";
import { files as ofTests } from "./counter.ts";
test("sees", () => {
  const seen = [ofPackage.length, ofTests.length, process.env.LEFT, "left" in globalThis, setTimeout.name];
  ofPackage.push("here");
  ofTests.push("here");
  process.env.LEFT = "here";
  Object.assign(globalThis, { left: "here" });
  jest.useFakeTimers();
  expect(seen).toEqual([]);
});`;

test("files share modules of packages, and neither those of tests nor globals; one may ask for its own", async () => {
  await using folder = await tempFolder();
  const own = '/** @jest-environment-options {"ownModules": true} */';
  const files = {
    "src/counter.ts": counter,
    "test/counter.ts": counter,
    "test/a.test.ts": testFile(""),
    "test/b.test.ts": testFile(""),
    "test/c.test.ts": testFile(own),
    "test/d.test.tsx":
      'import { test } from "@jest/globals";\ninterface Longer { a: 1 }\n\ntest("fails", () => { throw new Error("here"); });',
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  }
  const jest = [resolve(repository, "node_modules/jest/bin/jest.js"), "--config"];
  const config = [resolve(repository, "jest.config.js"), "--rootDir", folder.path, "-i", "--json"];
  const { stdout } = await promisify(execFile)(process.execPath, [...jest, ...config]).catch(
    (failure: { stdout: string }) => failure,
  );
  const messages = Result.parse(JSON.parse(stdout))
    .testResults.toSorted((one, other) => one.name.localeCompare(other.name))
    .map(({ assertionResults }) => assertionResults.flatMap(({ failureMessages }) => failureMessages).join());
  const seen = messages.map((message) =>
    [...message.matchAll(/^.*\+ {3}(.+),$/gm)].map(([, value]) => value),
  );
  const fresh = ["0", "undefined", "false", '"setTimeout"'];
  // jest decides which of the two that share modules runs first.
  expect(seen.slice(0, 2).toSorted()).toEqual([
    ["0", ...fresh],
    ["1", ...fresh],
  ]);
  expect(seen[2]).toEqual(["0", ...fresh]);
  expect(messages[3]).toMatch(/\/test\/d\.test\.tsx:4:29\)/);
});
