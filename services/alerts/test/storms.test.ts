import { expect, test } from "@jest/globals";
import { messageParts, type Together } from "../src/notifying/storms.ts";
import { ruleOn } from "./evaluation-fixture.ts";

const minuteMs = 60_000;

/** Alerts of a rule that fired at these times. */
function firedAt(times: readonly number[], ruleId = "away"): Together {
  const rule = ruleOn({ kind: "offline", longer_than: "PT1M" }, { id: ruleId });
  return times.map((at, index) => [
    {
      ...{ id: `${ruleId}-${index}`, rule_id: ruleId, rule_name: "rule", epoch: 1, severity: "warning" },
      ...{ device_id: `d${index}`, state: "firing", since: at, fired_at: at, cleared_at: null },
      ...{ cleared_why: null, value: null, flaps: 0, acknowledged_at: null, acknowledged_by: null },
      ...{
        note: null,
        record: 0,
        unsent: ["firing"],
        held: false,
        notified_at: null,
        sent_to: [],
        revision: 1,
      },
    },
    rule,
  ]);
}

const spread = (count: number, everyMs: number) => Array.from({ length: count }, (_, at) => at * everyMs);

test("more than twenty alerts of a rule within a minute are a storm, and others are not", () => {
  const calm = firedAt(spread(20, 1), "calm");
  const slow = firedAt(spread(40, minuteMs / 20), "slow");
  const many = firedAt(spread(21, minuteMs / 21), "many");
  expect(messageParts([...calm, ...many, ...slow], {}, 5)).toEqual({
    single: [...calm, ...slow],
    storms: [many],
    lasting: { many: 5 },
  });
});

test("a storm is one message again after fifteen minutes, and is over when few have come meanwhile", () => {
  const one = firedAt([3]);
  const many = firedAt(spread(21, 1));
  expect(messageParts([...one, ...firedAt([4], "other")], { away: 0 }, 15 * minuteMs - 1)).toEqual({
    single: firedAt([4], "other"),
    storms: [],
    lasting: { away: 0 },
  });
  expect(messageParts(many, { away: 0 }, 15 * minuteMs)).toMatchObject({
    storms: [many],
    lasting: { away: 15 * minuteMs },
  });
  expect(messageParts(one, { away: 0 }, 15 * minuteMs)).toEqual({ single: one, storms: [], lasting: {} });
});

test("a clock that was set back ends no channel's messages", () => {
  const one = firedAt([3]);
  expect(messageParts(one, { away: 5_000 }, 4_000).single).toEqual(one);
});
