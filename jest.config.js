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
};
