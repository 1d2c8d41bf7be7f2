import { describeTextError, parseConditionText } from "@devmesh/contracts/model/condition-text";
import { checkSilence, SilenceInput } from "@devmesh/contracts/model/silence";
import { ViolationList } from "@devmesh/contracts/model/violation";
import { MultiSelect, SegmentedControl, Text, Textarea, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TimeField, timeFieldFault, timeInField } from "../../components/time-field.tsx";
import { faultsOf, type ReadForm, useCheckedForm, violationsIn } from "../../components/use-checked-form.ts";
import { useRules } from "./use-alerts.ts";

/** A silence as it is typed. */
export interface TypedSilence {
  /** A condition over devices as text; empty for all. */
  readonly where: string;
  /** Ids; none for all rules. */
  readonly rule_ids: string[];
  readonly lasts: keyof typeof lengths | "times";
  /** Times of a {@link TimeField}, with `lasts: "times"`; an empty `from` is now. */
  readonly from: string;
  readonly until: string;
  readonly note: string;
}

/** Lengths that are offered, in milliseconds. */
const lengths = { "1 h": 3_600_000, "8 h": 28_800_000, "1 d": 86_400_000, "7 d": 604_800_000 } as const;

export const emptySilence: TypedSilence = {
  where: "",
  rule_ids: [],
  lasts: "1 h",
  from: "",
  until: "",
  note: "",
};

/** Properties of {@link CreateSilence}. */
interface CreateSilenceProps {
  /** What it begins with, such as the device and the rule of an alert. */
  readonly initial?: Partial<TypedSilence>;
  readonly onClose: () => void;
}

/** Creates a silence: for a time alerts are shown and not sent. */
export function CreateSilence({ initial, onClose }: CreateSilenceProps) {
  const api = useApi();
  const queries = useQueryClient();
  const { data: rules = [] } = useRules();
  const creation = useMutation({
    mutationFn: (body: SilenceInput) => api.call("createSilence", { body }),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: queryKeys.silences });
      onClose();
    },
  });
  const { values, field, submit } = useCheckedForm({
    initialValues: { ...emptySilence, ...initial },
    read: (typed: TypedSilence) => readSilence(typed, serverNow()),
    fieldOf: silenceField,
    error: creation.error,
  });
  return (
    <FormDialog
      title="New silence"
      noValidate
      action="Create"
      onSubmit={() => submit(creation.mutate)}
      work={creation}
      failure="The silence was not created"
      result={null}
      onClose={onClose}
    >
      <Text size="sm" c="dimmed">
        Alerts fire and are shown, and nobody is sent them. What still fires at its end is sent then.
      </Text>
      <TextInput
        label="Devices"
        description="As in their list, such as label:freezer; empty for all."
        autoComplete="off"
        spellCheck={false}
        {...field("where", { eager: values.where !== "" })}
        data-autofocus
      />
      <MultiSelect
        label="Rules"
        placeholder={values.rule_ids.length === 0 ? "All rules" : ""}
        data={rules.map(({ id, name }) => ({ value: id, label: name }))}
        maxDropdownHeight={220}
        searchable
        {...field("rule_ids")}
      />
      <SegmentedControl
        aria-label="It lasts"
        {...field("lasts")}
        data={[...Object.keys(lengths), { value: "times", label: "Other" }]}
      />
      {values.lasts === "times" && (
        <>
          <TimeField label="From" description="Empty for now." {...field("from")} />
          <TimeField label="Until" required {...field("until")} />
        </>
      )}
      <Textarea
        label="Note"
        description="Why. Optional."
        maxLength={1_000}
        autosize
        minRows={2}
        maxRows={6}
        {...field("note")}
      />
    </FormDialog>
  );
}

/** Reads a silence as it is typed; `now` is Unix ms. */
export function readSilence(typed: TypedSilence, now: number): ReadForm<TypedSilence, SilenceInput> {
  const { where, rule_ids, lasts, from, until, note } = typed;
  const condition = parseConditionText(where);
  const times =
    lasts === "times"
      ? { ...(from.trim() !== "" && { from: timeInField(from) }), until: timeInField(until) }
      : { until: new Date(now + lengths[lasts]).toISOString() };
  const { data, error } = SilenceInput.safeParse({
    where: "condition" in condition ? condition.condition : {},
    ...(rule_ids.length > 0 && { rule_ids }),
    ...times,
    note: note.trim() || null,
  });
  const violations = new ViolationList();
  if (data !== undefined) checkSilence(data, now, violations);
  const faults = faultsOf<TypedSilence>(
    error === undefined ? violations.list : violationsIn(error),
    silenceField,
  );
  if ("error" in condition) faults.where = describeTextError(condition.error);
  if (lasts === "times") {
    const wrong = { from: timeFieldFault(from), until: timeFieldFault(until) };
    if (wrong.from !== null) faults.from = wrong.from;
    if (until.trim() === "") faults.until = "Enter a time.";
    else if (wrong.until !== null) faults.until = wrong.until;
  }
  return { body: data === undefined || Object.keys(faults).length > 0 ? null : data, faults };
}

/** The field that a member of the body comes from. */
function silenceField(pointer: string): keyof TypedSilence & string {
  const [, first = ""] = pointer.split("/");
  return first in emptySilence ? (first as keyof TypedSilence) : "where";
}
