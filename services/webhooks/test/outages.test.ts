import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { describe } from "@jest/globals";
import { describeOutages, describeStoreAway } from "./outages.suite.ts";

describe("over SQLite", () => describeOutages(() => undefined));
describeOverMongodb("over MongoDB", (mongodb) => {
  describeOutages(() => mongodb().newDatabase().storeUrl);
  describeStoreAway(mongodb);
});
