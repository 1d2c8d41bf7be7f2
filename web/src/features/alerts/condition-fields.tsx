import { diagnosisFrames } from "@devmesh/contracts/model/diagnostics";
import { Autocomplete, NativeSelect, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { comparisons, conditionKinds, hasBounds, type TypedCondition } from "./condition-kinds.ts";
import type { TypedRule } from "./typed-rule.ts";

/** The properties of a field, with its fault. */
type RuleField = (name: keyof TypedRule) => { readonly error?: ReactNode };

/** Properties of {@link ConditionFields}. */
interface ConditionFieldsProps {
  readonly values: TypedCondition;
  readonly field: RuleField;
}

/** The condition of a rule as a sentence whose words are fields. */
export function ConditionFields({ values, field }: ConditionFieldsProps) {
  const Fields = fieldsOf[values.kind];
  return (
    <>
      <span>When</span>
      <NativeSelect
        aria-label="Kind of condition"
        data={Object.entries(conditionKinds).map(([value, { label }]) => ({ value, label }))}
        {...field("kind")}
      />
      <Fields values={values} field={field} />
    </>
  );
}

const plain = { autoComplete: "off", spellCheck: false } as const;

/** Events that are offered; those of one function or event are typed. */
const offeredEvents = [...diagnosisFrames, "offline", "online", "updated", "throttled"];

/** The fields of each kind, after its label. */
const fieldsOf: Readonly<Record<TypedCondition["kind"], (props: ConditionFieldsProps) => ReactNode>> = {
  value: ({ values, field }) => (
    <>
      <span>on topic</span>
      <TextInput aria-label="Topic" placeholder="temperature" w={170} {...plain} {...field("topic")} />
      <span>at</span>
      <TextInput
        aria-label="Pointer into the message"
        placeholder="the whole message"
        w={170}
        {...plain}
        {...field("pointer")}
      />
      <ComparisonFields values={values} field={field} />
    </>
  ),
  silent: ({ field }) => (
    <>
      <span>comes on topic</span>
      <TextInput aria-label="Topic" placeholder="any topic" w={170} {...plain} {...field("topic")} />
      <LongerThan field={field} />
    </>
  ),
  offline: ({ field }) => (
    <>
      <span>has no connection</span>
      <LongerThan field={field} />
    </>
  ),
  shadow: ({ values, field }) => (
    <>
      <span>at</span>
      <TextInput
        aria-label="Pointer into the shadow"
        placeholder="/state/reported/app/mode"
        w={240}
        {...plain}
        {...field("place")}
      />
      <ComparisonFields values={values} field={field} />
    </>
  ),
  not_taken: ({ field }) => (
    <>
      <span>is not reported</span>
      <LongerThan field={field} />
    </>
  ),
  event: ({ field }) => (
    <>
      <span>named</span>
      <Autocomplete
        aria-label="Name of the event"
        placeholder="login_refused"
        w={200}
        data={offeredEvents}
        {...plain}
        {...field("event")}
      />
      <span>happens</span>
      <TextInput
        aria-label="Number of times"
        placeholder="10"
        w={70}
        inputMode="numeric"
        {...plain}
        {...field("count")}
      />
      <span>times within</span>
      <TextInput aria-label="Within" placeholder="10 min" w={90} {...plain} {...field("within")} />
    </>
  ),
};

/** What a value is compared with, and for how long. */
function ComparisonFields({ values: { is }, field }: ConditionFieldsProps) {
  return (
    <>
      <NativeSelect aria-label="Comparison" data={[...comparisons]} {...field("is")} />
      {hasBounds(is) ? (
        <>
          <TextInput aria-label="Lower bound" placeholder="0" w={90} {...plain} {...field("low")} />
          <span>to</span>
          <TextInput aria-label="Upper bound" placeholder="10" w={90} {...plain} {...field("high")} />
        </>
      ) : (
        <TextInput aria-label="Limit" placeholder="8" w={110} {...plain} {...field("than")} />
      )}
      <span>for</span>
      <TextInput aria-label="It must hold for" placeholder="0 s" w={90} {...plain} {...field("for")} />
    </>
  );
}

function LongerThan({ field }: Pick<ConditionFieldsProps, "field">) {
  return (
    <>
      <span>for longer than</span>
      <TextInput aria-label="Longer than" placeholder="5 min" w={110} {...plain} {...field("longer_than")} />
    </>
  );
}
