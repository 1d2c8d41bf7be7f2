import { openMongo } from "@devmesh/store/mongodb";
import { type MongoUrl, parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { readQueryPlan } from "@devmesh/testkit/query-plan";
import { expect, test } from "@jest/globals";
import { executionCollection, executionFilters } from "../src/store/execution-store.mongodb.ts";
import { jobCollection, jobFilters } from "../src/store/job-store.mongodb.ts";
import { openMongoJobsStore } from "../src/store/jobs-store.mongodb.ts";
import { describeExecutionStore } from "./execution-store.suite.ts";
import { describeFirmwareStore } from "./firmware-store.suite.ts";

const { signal } = new AbortController();

describeOverMongodb("executions in MongoDB", (mongodb) => {
  const newStore = async () => {
    const database = mongodb().newDatabase();
    const url = parseStoreUrl(database.storeUrl) as MongoUrl;
    return {
      open: () => openMongoJobsStore(url, signal),
      async remove() {
        await database[Symbol.asyncDispose]();
      },
    };
  };
  describeExecutionStore("MongoDB", newStore);
  describeFirmwareStore("MongoDB", newStore);

  test("every query finds its documents by an index", async () => {
    await using database = mongodb().newDatabase();
    const url = parseStoreUrl(database.storeUrl) as MongoUrl;
    const { db, close } = await openMongo(url, [executionCollection, jobCollection], signal);
    const executions = db.collection<{ _id: string }>(executionCollection.name);
    await executions.insertMany(
      Array.from({ length: 2_000 }, (_, at) => ({
        _id: `e${at}`,
        device_id: `d${at}`,
        listed: true,
        state: at % 2 === 0 ? "queued" : "succeeded",
        not_before: 0,
        expires_at: at,
        ...(at % 50 === 1 && { lane: `d${at}`, due_at: at }),
        ...(at % 2 === 1 && { ended_at: at }),
        ...(at % 50 === 1 && { ticket: `t${at}` }),
        ...(at % 3 === 0 && { job_id: `j${at % 30}`, place: at / 2_000 }),
      })),
    );
    const filters = {
      of_device: executionFilters.ofDevice("d5", "~"),
      waiting: executionFilters.queuedOf("d4"),
      one_of_ticket: executionFilters.ofTicket("t1"),
      one_of_lane: executionFilters.sentOf("d1"),
      of_job: executionFilters.ofJob("j3", 0.1, 0.2),
      of_job_state: executionFilters.ofJobState("j3", "queued", 0.1, 0.2),
      one_of_job: executionFilters.devicesOfJob("j3", ["d3", "d33"]),
      due: executionFilters.overdue(60),
      expiring: executionFilters.expired(20),
      ended: executionFilters.endedBefore(20),
    };
    for (const [index, filter] of Object.entries(filters)) {
      const plan = readQueryPlan(await executions.find(filter).explain());
      expect([index, plan.indexes, plan.scansCollection]).toEqual([index, [index], false]);
    }
    const jobs = db.collection(jobCollection.name);
    await jobs.insertMany(
      Array.from({ length: 2_000 }, (_, at) => ({
        state: at % 2 === 0 ? "running" : "done",
        settled: at % 50 !== 0,
        ...(at % 2 === 1 && { ended_at: at }),
      })),
    );
    for (const filter of [jobFilters.open(), jobFilters.endedBefore(20)]) {
      const plan = readQueryPlan(await jobs.find(filter).explain());
      expect([plan.indexes, plan.scansCollection]).toEqual([["settled"], false]);
    }
    await close();
  });
});
