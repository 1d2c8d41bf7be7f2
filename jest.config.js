import { randomBytes } from "node:crypto";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** Names what this run makes on servers that others use as well; the workers that jest starts inherit it. */
process.env.DEVMESH_TEST_RUN = randomBytes(4).toString("hex");
/** As of `npm start`: a program that a test starts takes a quarter less of the processor. */
process.env.NODE_COMPILE_CACHE ??= join(homedir(), ".cache/devmesh/compiled");

function swc({ tsx }) {
  const parser = { syntax: "typescript", tsx };
  const transform = { react: { runtime: "automatic" } };
  return ["@swc/jest", { jsc: { parser, transform, target: "es2024" }, module: { type: "es6" } }];
}

/** One jest set-up for every package: ESM TypeScript through swc, one result file for the closing count. */
export default {
  testEnvironment: "node",
  extensionsToTreatAsEsm: [".ts", ".tsx"],
  transform: { "^.+\\.ts$": swc({ tsx: false }), "^.+\\.tsx$": swc({ tsx: true }) },
  // Components are tested without styles.
  moduleNameMapper: {
    "\\.css$": resolve(import.meta.dirname, "web/test/no-styles.cjs"),
    // One file in place of one module for each icon.
    "^lucide-react$": resolve(import.meta.dirname, "node_modules/lucide-react/dist/cjs/lucide-react.js"),
  },
  testMatch: ["<rootDir>/**/*.test.{ts,tsx}"],
  // Above what a test waits for one thing, which says more when it fails (tools/testkit/src/eventually.ts).
  testTimeout: 180_000,
  // Of a package that runs alone: suites wait more than they compute, so that three keep two cores busy.
  maxWorkers: 3,
  testSequencer: resolve(import.meta.dirname, "tools/testkit/src/longest-first.mjs"),
  globalTeardown: resolve(import.meta.dirname, "tools/testkit/src/drop-test-databases.ts"),
};
