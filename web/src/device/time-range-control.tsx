import { Group, SegmentedControl, TextInput } from "@mantine/core";
import { fromLocalField, toLocalField } from "../data/local-time.ts";
import { asBetween, isLastRange, lastRanges, type TimeRange } from "./time-range.ts";

/** Asks for the time that is looked at. */
export function TimeRangeControl({
  range,
  onChange,
}: {
  readonly range: TimeRange;
  readonly onChange: (range: TimeRange) => void;
}) {
  return (
    <Group gap="sm" align="end">
      <SegmentedControl
        aria-label="Time that is shown"
        value={range.kind === "last" ? range.range : "custom"}
        onChange={(chosen) =>
          onChange(isLastRange(chosen) ? { kind: "last", range: chosen } : asBetween(range, Date.now()))
        }
        data={[
          ...Object.entries(lastRanges).map(([value, { label }]) => ({ value, label })),
          { value: "custom", label: "Custom" },
        ]}
      />
      {range.kind === "between" && (
        <>
          <TextInput
            label="From"
            type="datetime-local"
            step={1}
            value={toLocalField(range.since)}
            onChange={(event) => onChange({ ...range, since: fromLocalField(event.currentTarget.value) })}
          />
          <TextInput
            label="Until"
            type="datetime-local"
            step={1}
            value={toLocalField(range.until)}
            onChange={(event) => onChange({ ...range, until: fromLocalField(event.currentTarget.value) })}
          />
        </>
      )}
    </Group>
  );
}
