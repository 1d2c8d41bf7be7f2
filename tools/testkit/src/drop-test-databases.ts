import { dropDatabases, testDatabasePrefix } from "./mongodb.ts";

/** Run by jest after all tests of a package: drops their databases on a server that runs on. */
export default async function dropTestDatabases(): Promise<void> {
  const url = process.env.MONGODB_URL;
  if (url) await dropDatabases(url, (name) => name.startsWith(`${testDatabasePrefix}_`));
}
