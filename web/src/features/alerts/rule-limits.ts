import type { ValueCondition } from "@devmesh/contracts/model/rule";
import { topicMatcher } from "@devmesh/contracts/model/topic-match";
import { valueText } from "../../components/number-text.ts";
import type { PlotLimits } from "../data/plot-limits.ts";
import { comparisonText, hasOrder } from "./condition-kinds.ts";

/** The lines of a condition in a chart; `name` is the rule's. */
export function linesOf({ is, than, clear_at }: ValueCondition, name: string): PlotLimits["lines"] {
  const label = `${name === "" ? "fires when it " : `${name}: `}${comparisonText({ is, than })}`;
  const ends = clear_at === undefined || !hasOrder(is) ? null : clear_at;
  return [
    ...(typeof than === "number" ? [{ value: than, label }] : []),
    ...(Array.isArray(than) ? than.map((value, nth) => ({ value, label: nth === 1 ? label : "" })) : []),
    ...(ends === null
      ? []
      : [
          {
            value: ends,
            label: `ends ${is.startsWith(">") ? "below" : "above"} ${valueText(ends)}`,
            ends: true as const,
          },
        ]),
  ];
}

/** Whether a condition is on a value; `topic` is relative to those of its device. */
export function isOn(when: ValueCondition, topic: string, pointer: string): boolean {
  return when.pointer === pointer && topicMatcher(when.topic)(topic);
}
