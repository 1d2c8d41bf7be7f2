import { randomBytes } from "node:crypto";
import { MongoClient } from "mongodb";
import { type MongodbContainer, startMongodbContainer } from "./mongodb-container.ts";

/** A real server that speaks MongoDB's protocol, for tests. */
export interface TestMongodb extends AsyncDisposable {
  /** Its URL, without a database. */
  readonly url: string;
  /** Port of its first server. */
  readonly port: number;
  /** `STORE_URL` of a database of that name. */
  storeUrlOf(database: string): string;
  /** A new database; it exists once something is written to it. */
  newDatabase(): TestDatabase;
  /** Drops the databases with this prefix. */
  dropDatabases(prefix: string): Promise<void>;
}

/** A database that only one test uses; disposing of it drops it. */
export interface TestDatabase extends AsyncDisposable {
  readonly name: string;
  readonly storeUrl: string;
  /** Its `STORE_URL` through a proxy on this port of 127.0.0.1. */
  storeUrlBehind(port: number): string;
}

/** Prefix of the names of this run's databases, so that leftovers can be dropped. */
export const testDatabasePrefix = `devmesh_test_${process.env.DEVMESH_TEST_RUN ?? process.pid}`;

/** Why suites over MongoDB are skipped where {@link findMongodb} answers null. */
export const withoutMongodb = "no MONGODB_URL, and no Docker to start one";

/**
 * The server of `MONGODB_URL`, else one in a container, which ends with its disposal; null without both. Suites use
 * `describeOverMongodb`.
 */
export async function findMongodb(): Promise<TestMongodb | null> {
  const given = process.env.MONGODB_URL;
  const container: MongodbContainer | null = given ? null : await startMongodbContainer();
  const url = given || container?.url;
  if (!url) return null;
  const storeUrlOf = (database: string) => withDatabase(url, database);
  const drop = (isMeant: (name: string) => boolean) => dropDatabases(url, isMeant);
  return {
    url,
    port: Number(/^[^/]+\/\/(?:[^@/]*@)?[^:,/?]*:(\d+)/.exec(url)?.[1] ?? 27_017),
    storeUrlOf,
    newDatabase() {
      const name = `${testDatabasePrefix}_${randomBytes(6).toString("hex")}`;
      return {
        name,
        storeUrl: storeUrlOf(name),
        storeUrlBehind: (port) => `mongodb://127.0.0.1:${port}/${name}?directConnection=true`,
        [Symbol.asyncDispose]: () => drop((found) => found === name),
      };
    },
    dropDatabases: (prefix) => drop((found) => found.startsWith(prefix)),
    async [Symbol.asyncDispose]() {
      await container?.stop();
    },
  };
}

/** `url` with a database in its path. */
function withDatabase(url: string, database: string): string {
  const { base, options } = /^(?<base>[^?]*?)\/?(?<options>\?.*)?$/.exec(url)?.groups ?? {};
  const hosts = base?.replace(/^(mongodb(?:\+srv)?:\/\/[^/]+).*$/, "$1");
  return `${hosts}/${database}${options ?? ""}`;
}

/** Drops the databases of a server that `isMeant` selects. */
export async function dropDatabases(url: string, isMeant: (name: string) => boolean): Promise<void> {
  await using client = new MongoClient(url);
  const { databases } = await client.db("admin").admin().listDatabases({ nameOnly: true });
  for (const { name } of databases) if (isMeant(name)) await client.db(name).dropDatabase();
}
