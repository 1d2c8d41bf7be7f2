import { summaryOf, type TopicNumbers } from "../src/features/data/topic-numbers.ts";

/** Summary of all numbers of the first series of a topic. */
export function wholeSummary(topic: TopicNumbers | undefined) {
  const [first] = topic?.series ?? [];
  return first === undefined ? null : summaryOf(first, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
}
