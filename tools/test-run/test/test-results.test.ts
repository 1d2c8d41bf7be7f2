import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import { closingLine, failureLine, readTestOutcome, sumOf } from "../src/test-results.ts";

const nothing = {
  numPassedTests: 0,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  numRuntimeErrorTestSuites: 0,
  testResults: [],
};

/** What is read out of a result file of jest that holds `result`. */
async function outcomeOf(result: object) {
  await using folder = await tempFolder();
  const file = join(folder.path, "jest.json");
  await writeFile(file, JSON.stringify({ ...nothing, ...result }));
  return await readTestOutcome(file);
}

test("a suite that could not be loaded counts as a failed test", async () => {
  const numbers = { numPassedTests: 5, numFailedTests: 1, numPendingTests: 2, numTodoTests: 1 };
  expect(await outcomeOf({ ...numbers, numRuntimeErrorTestSuites: 1 })).toMatchObject({
    passed: 5,
    failed: 2,
    skipped: 3,
  });
});

test("a result that is missing counts as a failed test and says so", async () => {
  await using folder = await tempFolder();
  expect(await readTestOutcome(join(folder.path, "jest.json"))).toEqual({
    passed: 0,
    failed: 1,
    skipped: 0,
    failures: [{ name: "all tests", message: "jest left no result that can be read" }],
  });
});

test("each failed test is told in one line with its package, its full name and why, without colours and stack", async () => {
  const { failures } = await outcomeOf({
    numPassedTests: 1,
    numFailedTests: 2,
    testResults: [
      {
        name: "/repository/services/data/test/wire.test.ts",
        status: "failed",
        message: "drawn for a terminal",
        assertionResults: [
          { fullName: "a query is answered", status: "passed", failureMessages: [] },
          {
            fullName: "a query is\nrefused",
            status: "failed",
            failureMessages: [
              "Error: \u001b[2mexpect(\u001b[22mreceived\u001b[2m)\u001b[22m.toBe(expected)\n\n" +
                "Expected: 3\nReceived: 2\n    at /repository/services/data/test/wire.test.ts:7:3",
            ],
          },
          { fullName: "a page is full", status: "failed", failureMessages: ["x".repeat(1_000)] },
          { fullName: "a page is empty", status: "pending", failureMessages: [] },
        ],
      },
    ],
  });
  expect(failures.map((failure) => failureLine("@devmesh/data", failure))).toEqual([
    "FAILED @devmesh/data › a query is refused: Error: expect(received).toBe(expected) | Expected: 3 | Received: 2",
    `FAILED @devmesh/data › a page is full: ${"x".repeat(600)}…`,
  ]);
});

test("a suite that could not be loaded is told by the name of its file", async () => {
  const { failures } = await outcomeOf({
    numRuntimeErrorTestSuites: 1,
    testResults: [
      {
        name: "/repository/services/data/test/wire.test.ts",
        status: "failed",
        message: "  ● Test suite failed to run\n\n    Cannot find module './store.ts'\n",
        assertionResults: [],
      },
    ],
  });
  expect(failures.map((failure) => failureLine("@devmesh/data", failure))).toEqual([
    "FAILED @devmesh/data › wire.test.ts: ● Test suite failed to run | Cannot find module './store.ts'",
  ]);
});

test("the closing line sums up", () => {
  const sum = sumOf([
    { passed: 1, failed: 2, skipped: 3 },
    { passed: 10, failed: 0, skipped: 0 },
  ]);
  expect(closingLine(sum)).toBe("Tests: 11 passed, 2 failed, 3 skipped");
});
