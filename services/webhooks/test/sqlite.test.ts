import { describe } from "@jest/globals";
import { describeDeliveries } from "./deliveries.suite.ts";
import { describeWithMovedClock } from "./moved-clock.suite.ts";

describe("over SQLite", () => {
  describeDeliveries(() => undefined);
});
describe("over SQLite, with a moved clock", () => {
  describeWithMovedClock(() => undefined);
});
