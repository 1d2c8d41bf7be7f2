import { recordRoot } from "@devmesh/contracts/model/device-id";
import { membersOf } from "@devmesh/contracts/model/json-pointer";
import type { RuleCondition } from "@devmesh/contracts/model/rule";
import { topicMatcher } from "@devmesh/contracts/model/topic-match";
import type { StoredRule } from "../store/rule-store.ts";
import { type QuietNumbers, quietNumbers } from "./value-condition.ts";

/** A rule with a condition of that kind. */
export type RuleOf<K extends RuleCondition["kind"]> = StoredRule & {
  readonly when: Extract<RuleCondition, { readonly kind: K }>;
};

/** Whether the condition of a rule is of that kind. */
export function isOn<K extends RuleCondition["kind"]>(rule: StoredRule, kind: K): rule is RuleOf<K> {
  return rule.when.kind === kind;
}

/** Names of topics whose rules are kept. */
const maxNames = 10_000;

/** All rules as they were read, arranged for the evaluation. */
export interface RuleBook {
  readonly byId: ReadonlyMap<string, StoredRule>;
  /** Topic filters of the rules on records, each once. */
  readonly topics: readonly string[];
  readonly offline: readonly RuleOf<"offline">[];
  readonly silent: readonly RuleOf<"silent">[];
  readonly event: readonly RuleOf<"event">[];
  readonly shadow: readonly (RuleOf<"shadow"> | RuleOf<"not_taken">)[];
  /** The enabled rules whose topic filter matches the name of a record below its device. */
  ofRecord(name: string): RulesOfRecord;
}

/** The enabled rules on records of one name. */
interface RulesOfRecord {
  readonly silent: readonly RuleOf<"silent">[];
  readonly value: readonly RulesOfValue[];
}

/** Rules on the same value of a record. */
interface RulesOfValue {
  /** Of its pointer. */
  readonly members: readonly string[];
  readonly rules: readonly RuleOf<"value">[];
  readonly quiet: QuietNumbers;
}

/** The topics that a condition is about, relative to `db/ID/`. */
export function filterOf({ topic = "#" }: { readonly topic?: string | undefined }): string {
  return topic;
}

/** The name of a record's topic below its device. */
export function nameOfRecord({ topic }: { readonly topic: string }): string {
  return topic.slice(topic.indexOf("/", recordRoot.length + 1) + 1);
}

/** Arranges rules by topic filter: rules with one filter cost a record one match. */
export function ruleBook(rules: readonly StoredRule[]): RuleBook {
  const enabled = rules.filter(({ enabled }) => enabled);
  const isOf =
    <K extends RuleCondition["kind"]>(kind: K) =>
    (rule: StoredRule): rule is RuleOf<K> =>
      isOn(rule, kind);
  const silent = enabled.filter(isOf("silent"));
  const onRecords = [...enabled.filter(isOf("value")), ...silent];
  const byTopic = [...Map.groupBy(onRecords, ({ when }) => filterOf(when))].map(([topic, same]) => ({
    matches: topicMatcher(topic),
    same,
  }));
  /** What was found for names of topics. */
  const ofName = new Map<string, RulesOfRecord>();
  return {
    byId: new Map(rules.map((rule) => [rule.id, rule])),
    topics: [...new Set(onRecords.map(({ when }) => filterOf(when)))],
    offline: enabled.filter(isOf("offline")),
    silent,
    event: enabled.filter(isOf("event")),
    shadow: [...enabled.filter(isOf("shadow")), ...enabled.filter(isOf("not_taken"))],
    ofRecord(name) {
      const known = ofName.get(name);
      if (known !== undefined) return known;
      const found = arranged(byTopic.flatMap(({ matches, same }) => (matches(name) ? same : [])));
      if (ofName.size < maxNames) ofName.set(name, found);
      return found;
    },
  };
}

function arranged(rules: readonly (RuleOf<"value"> | RuleOf<"silent">)[]): RulesOfRecord {
  const onValues = rules.filter((rule): rule is RuleOf<"value"> => isOn(rule, "value"));
  return {
    silent: rules.filter((rule): rule is RuleOf<"silent"> => isOn(rule, "silent")),
    value: [...Map.groupBy(onValues, ({ when }) => when.pointer)].map(([pointer, same]) => ({
      members: membersOf(pointer),
      rules: same,
      quiet: quietNumbers(same.map(({ when }) => when)),
    })),
  };
}
