import { randomBytes } from "node:crypto";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** Names what this run makes on servers that others use as well; the workers that jest starts inherit it. */
process.env.DEVMESH_TEST_RUN = randomBytes(4).toString("hex");
/** As of `npm start`: a program that a test starts takes a quarter less of the processor. */
process.env.NODE_COMPILE_CACHE ??= join(homedir(), ".cache/devmesh/compiled");

/** One jest set-up for every package, one result file for the closing count. */
export default {
  // Files share the modules of one process, which Node evaluates: no copies for each file (docs/testing.md).
  runtime: resolve(import.meta.dirname, "tools/testkit/src/jest/runtime.ts"),
  testEnvironment: resolve(import.meta.dirname, "tools/testkit/src/jest/environment.ts"),
  transform: {},
  injectGlobals: false,
  testMatch: ["<rootDir>/**/*.test.{ts,tsx}"],
  // Above what a test waits for one thing, which says more when it fails (tools/testkit/src/eventually.ts).
  testTimeout: 180_000,
  // Of a package that runs alone: suites wait more than they compute, so that three keep two cores busy.
  maxWorkers: 3,
  testSequencer: resolve(import.meta.dirname, "tools/testkit/src/longest-first.mjs"),
  globalTeardown: resolve(import.meta.dirname, "tools/testkit/src/drop-test-databases.ts"),
};
