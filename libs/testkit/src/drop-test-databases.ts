import { MongoClient } from "mongodb";

/** Run by jest when all tests of a package have ended: drops the databases that they left on a server which goes on running. */
export default async function dropTestDatabases(): Promise<void> {
  const { MONGODB_URL: url, DEVMESH_TEST_RUN: run } = process.env;
  if (!url || !run) return;
  const client = new MongoClient(url);
  try {
    const { databases } = await client.db("admin").admin().listDatabases({ nameOnly: true });
    for (const { name } of databases) {
      if (name.startsWith(`devmesh_test_${run}_`)) await client.db(name).dropDatabase();
    }
  } finally {
    await client.close();
  }
}
