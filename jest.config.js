import { randomBytes } from "node:crypto";
import { resolve } from "node:path";

/** Names what this run makes on servers that others use as well; the workers that jest starts inherit it. */
process.env.DEVMESH_TEST_RUN = randomBytes(4).toString("hex");

/** One jest set-up for every package: ESM TypeScript through swc, one result file for the closing count. */
export default {
  testEnvironment: "node",
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "^.+\\.ts$": [
      "@swc/jest",
      { jsc: { parser: { syntax: "typescript" }, target: "es2024" }, module: { type: "es6" } },
    ],
  },
  testMatch: ["<rootDir>/**/*.test.ts"],
  // Above what a test waits for one thing, which says more when it fails (libs/testkit/src/eventually.ts).
  testTimeout: 90_000,
  globalTeardown: resolve(import.meta.dirname, "libs/testkit/src/drop-test-databases.ts"),
};
