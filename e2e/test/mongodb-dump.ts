import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { BSON, MongoClient } from "mongodb";

/** Which collections of a database to dump. */
interface DumpPart {
  readonly database: string;
  readonly except?: readonly string[];
  readonly only?: string;
}

/** Dumps databases into a folder and restores what is there, indexes included. */
export interface MongodbDump {
  /** The tools, for the name of a test. */
  readonly by: string;
  dump(part: DumpPart, folder: string): Promise<void>;
  restore(folder: string): Promise<void>;
}

/** `mongodump` and `mongorestore`, else the same by the driver: collection by collection, not of one moment. */
export async function mongodbDump(url: string): Promise<MongodbDump> {
  const tools = await run("mongodump", ["--version"]).catch(() => null);
  return tools === null ? byDriver(url) : byTools(url);
}

const run = promisify(execFile);

function byTools(url: string): MongodbDump {
  return {
    by: "mongodump and mongorestore",
    async dump({ database, except = [], only }, folder) {
      const part = [
        ...except.map((name) => `--excludeCollection=${name}`),
        ...(only === undefined ? [] : [`--collection=${only}`]),
      ];
      await run("mongodump", [`--uri=${url}`, `--db=${database}`, ...part, "--gzip", `--out=${folder}`]);
    },
    async restore(folder) {
      await run("mongorestore", [`--uri=${url}`, "--gzip", folder]);
    },
  };
}

function byDriver(url: string): MongodbDump {
  return {
    by: "the driver, without mongodump",
    async dump({ database, except = [], only }, folder) {
      await using client = new MongoClient(url);
      const db = client.db(database);
      await mkdir(join(folder, database), { recursive: true });
      for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray()) {
        if (except.includes(name) || (only !== undefined && name !== only)) continue;
        const collection = db.collection(name);
        const dumped = { indexes: await collection.indexes(), documents: await collection.find().toArray() };
        await writeFile(
          join(folder, database, `${name}.json`),
          BSON.EJSON.stringify(dumped, { relaxed: false }),
        );
      }
    },
    async restore(folder) {
      await using client = new MongoClient(url);
      for (const database of await readdir(folder)) {
        for (const file of await readdir(join(folder, database))) {
          const { indexes, documents } = BSON.EJSON.parse(
            await readFile(join(folder, database, file), "utf8"),
          );
          const collection = client.db(database).collection(file.replace(/\.json$/, ""));
          if (documents.length > 0) await collection.insertMany(documents);
          const own = indexes.filter(({ name }: { name: string }) => name !== "_id_");
          if (own.length > 0) await collection.createIndexes(own);
        }
      }
    },
  };
}
