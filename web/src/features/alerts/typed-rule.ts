import {
  describeTextError,
  parseConditionText,
  printConditionText,
} from "@devmesh/contracts/model/condition-text";
import { type AlertRule, checkRule, RuleInput } from "@devmesh/contracts/model/rule";
import { ViolationList } from "@devmesh/contracts/model/violation";
import { durationAsTyped, typedDuration } from "../../components/typed-duration.ts";
import { faultsOf, type ReadForm, violationsIn } from "../../components/use-checked-form.ts";
import {
  conditionAsTyped,
  conditionField,
  conditionKinds,
  conditionText,
  emptyCondition,
  type TypedCondition,
} from "./condition-kinds.ts";

/** A rule as it is typed; a text may be empty for the default. */
export interface TypedRule extends TypedCondition {
  /** Empty for the condition in words. */
  readonly name: string;
  readonly enabled: boolean;
  readonly severity: AlertRule["severity"];
  /** A condition over devices as text; empty for all. */
  readonly where: string;
  /** A duration. */
  readonly for: string;
  /** Ids of channels. */
  readonly notify: readonly string[];
  /** A duration; empty for never. */
  readonly repeat: string;
  readonly note: string;
}

export const emptyRule: TypedRule = {
  ...emptyCondition,
  name: "",
  enabled: true,
  severity: "warning",
  where: "",
  for: "",
  notify: [],
  repeat: "",
  note: "",
};

/** Reads a rule as it is typed. */
export function readRule(typed: TypedRule): ReadForm<TypedRule, RuleInput> {
  const kind = conditionKinds[typed.kind];
  const where = parseConditionText(typed.where);
  const parsed = RuleInput.safeParse({
    name: typed.name.trim() || "-",
    enabled: typed.enabled,
    severity: typed.severity,
    where: "condition" in where ? where.condition : {},
    when: kind.read(typed),
    ...(kind.holds && typed.for.trim() !== "" && { for: typedDuration(typed.for) }),
    notify: typed.notify,
    repeat: typed.repeat.trim() === "" ? null : typedDuration(typed.repeat),
    note: typed.note.trim() || null,
  });
  const violations = new ViolationList();
  if (parsed.success) checkRule(parsed.data, violations);
  const faults = faultsOf<TypedRule>(
    parsed.success ? violations.list : violationsIn(parsed.error),
    (pointer) => ruleField(pointer, typed),
  );
  if ("error" in where) faults.where = describeTextError(where.error);
  if (!parsed.success || Object.keys(faults).length > 0) return { body: null, faults };
  const { data: body } = parsed;
  return { body: typed.name.trim() === "" ? { ...body, name: usualName(body) } : body, faults };
}

/** What a rule is called that got no name: its condition. */
function usualName({ when }: Pick<AlertRule, "when">): string {
  const name = conditionText(when);
  return name.length > 128 ? `${name.slice(0, 127).toWellFormed()}…` : name;
}

/** The field that a member of the body comes from. */
export function ruleField(pointer: string, typed: TypedCondition): keyof TypedRule {
  const [, first = "", ...below] = pointer.split("/");
  if (first === "when") return conditionField(typed, below);
  return first in emptyRule ? (first as keyof TypedRule) : "name";
}

/** A rule as it is typed; null for one whose condition only the API can change. */
export function ruleAsTyped(rule: AlertRule): TypedRule | null {
  const condition = conditionAsTyped(rule.when);
  return (
    condition && {
      ...condition,
      name: rule.name,
      enabled: rule.enabled,
      severity: rule.severity,
      where: printConditionText(rule.where),
      for: hasNoTime(rule) ? "" : durationAsTyped(rule.for),
      notify: rule.notify,
      repeat: rule.repeat === null ? "" : durationAsTyped(rule.repeat),
      note: rule.note ?? "",
    }
  );
}

function hasNoTime(rule: Pick<AlertRule, "for">): boolean {
  return /^P(T?0[A-Z])+$/.test(rule.for);
}

/** A rule in a sentence: "When temperature is above −15 for 5 min, on devices with label:freezer". */
export function ruleSentence(rule: Pick<AlertRule, "when" | "for" | "where">): string {
  const where = printConditionText(rule.where);
  const time = hasNoTime(rule) ? "" : ` for ${durationAsTyped(rule.for)}`;
  const devices = where === "" ? "" : `, on devices with ${where}`;
  return `When ${conditionText(rule.when)}${time}${devices}`;
}
