import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { startJobsFixture } from "./jobs-fixture.ts";
import { describeWaitingCalls } from "./waiting-calls.suite.ts";

describeWaitingCalls("SQLite", startJobsFixture);

describeOverMongodb("processes over MongoDB", (mongodb) => {
  describeWaitingCalls("MongoDB", async () => {
    const database = mongodb().newDatabase();
    const fixture = await startJobsFixture(database.storeUrl);
    return {
      ...fixture,
      async [Symbol.asyncDispose]() {
        await fixture[Symbol.asyncDispose]();
        await database[Symbol.asyncDispose]();
      },
    };
  });
});
