import { dropDatabases, testDatabasePrefix } from "./mongodb.ts";

/**
 * Run by jest when all tests of a package have ended: drops the databases that they left on a server which goes on
 * running.
 */
export default async function dropTestDatabases(): Promise<void> {
  const url = process.env.MONGODB_URL;
  if (url) await dropDatabases(url, (name) => name.startsWith(`${testDatabasePrefix}_`));
}
