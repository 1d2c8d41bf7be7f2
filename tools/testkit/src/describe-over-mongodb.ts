import { afterAll, describe } from "@jest/globals";
import { findMongodb, type TestMongodb, withoutMongodb } from "./mongodb.ts";

const found = await findMongodb();

// Here, and not in a suite: the suites of a file share the server.
afterAll(async () => {
  await found?.[Symbol.asyncDispose]();
});

/** Tests over MongoDB; call the argument of `suite` within a test or hook. Skipped without a server. */
export function describeOverMongodb(title: string, suite: (mongodb: () => TestMongodb) => void): void {
  if (found === null) describe.skip(`${title} (${withoutMongodb})`, () => suite(absent));
  else describe(title, () => suite(() => found));
}

function absent(): never {
  throw new Error(`there is no MongoDB here: ${withoutMongodb}`);
}
