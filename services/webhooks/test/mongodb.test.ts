import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { describeDeliveries } from "./deliveries.suite.ts";
import { describeWithMovedClock } from "./moved-clock.suite.ts";

describeOverMongodb("over MongoDB", (mongodb) => {
  describeDeliveries(() => mongodb().newDatabase().storeUrl);
});
describeOverMongodb("over MongoDB, with a moved clock", (mongodb) => {
  describeWithMovedClock(() => mongodb().newDatabase().storeUrl);
});
