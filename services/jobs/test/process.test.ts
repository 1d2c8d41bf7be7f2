import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { describeFirmware } from "./firmware.suite.ts";
import { startJobsFixture } from "./jobs-fixture.ts";
import { describeRollouts } from "./rollout.suite.ts";
import { describeUpdates } from "./updates.suite.ts";
import { describeWaitingCalls } from "./waiting-calls.suite.ts";

describeWaitingCalls("SQLite", startJobsFixture);
describeFirmware("SQLite", startJobsFixture);
describeRollouts("SQLite", startJobsFixture);
describeUpdates("SQLite", startJobsFixture);

describeOverMongodb("processes over MongoDB", (mongodb) => {
  const startOverMongodb = async () => {
    const database = mongodb().newDatabase();
    const fixture = await startJobsFixture(database.storeUrl);
    return {
      ...fixture,
      async [Symbol.asyncDispose]() {
        await fixture[Symbol.asyncDispose]();
        await database[Symbol.asyncDispose]();
      },
    };
  };
  describeWaitingCalls("MongoDB", startOverMongodb);
  describeFirmware("MongoDB", startOverMongodb);
  describeRollouts("MongoDB", startOverMongodb);
  describeUpdates("MongoDB", startOverMongodb);
});
