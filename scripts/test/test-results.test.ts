import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { closingLine, readTestCount, sumOf } from "../src/test-results.ts";
import { tempFolder } from "./temp-folder.ts";

test("a suite that could not be loaded and a result that is missing count as failed tests", async () => {
  await using folder = await tempFolder();
  const file = join(folder.path, "jest.json");
  expect(await readTestCount(file)).toEqual({ passed: 0, failed: 1, skipped: 0 });
  const result = {
    numPassedTests: 5,
    numFailedTests: 1,
    numPendingTests: 2,
    numTodoTests: 1,
    numRuntimeErrorTestSuites: 1,
  };
  await writeFile(file, JSON.stringify(result));
  expect(await readTestCount(file)).toEqual({ passed: 5, failed: 2, skipped: 3 });
});

test("the closing line sums up", () => {
  const sum = sumOf([
    { passed: 1, failed: 2, skipped: 3 },
    { passed: 10, failed: 0, skipped: 0 },
  ]);
  expect(closingLine(sum)).toBe("Tests: 11 passed, 2 failed, 3 skipped");
});
