import { expect, test } from "@jest/globals";
import { ruleOn, startEvaluation } from "./evaluation-fixture.ts";

const { signal } = new AbortController();

test("the first rule on records has those that are stored right after its creation", async () => {
  const other = ruleOn({ kind: "offline", longer_than: "PT1H" });
  await using evaluated = await startEvaluation(other);
  evaluated.addDevice("pump");
  evaluated.publish("pump", "temp", 90);
  await evaluated.pass(3);
  const rule = ruleOn({ kind: "value", topic: "temp", pointer: "", is: ">", than: 60 }, { id: "warm" });
  await evaluated.store.rules.insertRule(rule, 500, signal);
  evaluated.publish("pump", "temp", 70);
  await evaluated.pass(2);
  const found = await evaluated.alerts();
  expect(found.map(({ rule_id, state, value }) => [rule_id, state, value])).toEqual([["warm", "firing", 70]]);
});
