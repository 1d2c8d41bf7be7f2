import { setTimeout as sleep } from "node:timers/promises";
import { openMongo } from "@devmesh/store/mongodb";
import { type MongoUrl, parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { startTcpProxy } from "@devmesh/testkit/tcp-proxy";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe } from "@jest/globals";
import { type JobsFixture, startJobsFixture } from "./jobs-fixture.ts";

/** Ends the lease of a leader that was killed, as its time would. */
async function endLeases(storeUrl: string): Promise<void> {
  const { signal } = new AbortController();
  const { db, close } = await openMongo(parseStoreUrl(storeUrl) as MongoUrl, [], signal);
  await db.collection("leases").deleteMany({});
  await close();
}

/** Tests of processes of the service, over each store; call the argument of `suite` within a hook. */
export function describeOverStores(title: string, suite: (start: () => Promise<JobsFixture>) => void): void {
  describe(`${title} over SQLite`, () =>
    suite(() =>
      startJobsFixture(async () => {
        const { path, ...folder } = await tempFolder();
        return { ...folder, storeUrl: `sqlite:${path}/jobs.db`, endLeases: async () => undefined };
      }),
    ));
  describeOverMongodb(`${title} over MongoDB`, (mongodb) =>
    suite(() =>
      startJobsFixture(async () => {
        const database = mongodb().newDatabase();
        const direct = new URL(database.storeUrl);
        const proxy = await startTcpProxy(Number(direct.port));
        const proxied = new URL(direct);
        proxied.port = String(proxy.port);
        return {
          storeUrl: proxied.href,
          endLeases: () => endLeases(database.storeUrl),
          async interrupt() {
            proxy.cut();
            await sleep(300);
            proxy.restore();
          },
          async [Symbol.asyncDispose]() {
            await proxy.close();
            await database[Symbol.asyncDispose]();
          },
        };
      }),
    ),
  );
}
