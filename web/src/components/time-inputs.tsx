import { TextInput } from "@mantine/core";

/** A range of time in ISO 8601; empty for no bound. */
interface Bounds {
  readonly since: string;
  readonly until: string;
}

interface TimeInputsProps {
  readonly range: Bounds;
  readonly onChange: (changes: Partial<Bounds>) => void;
}

const bounds = [
  { name: "since", label: "From" },
  { name: "until", label: "Until" },
] as const;

/** Fields for a range of time, in the browser's time zone. */
export function TimeInputs({ range, onChange }: TimeInputsProps) {
  return bounds.map(({ name, label }) => (
    <TextInput
      key={name}
      size="xs"
      label={label}
      type="datetime-local"
      step={1}
      value={toLocalField(range[name])}
      onChange={(event) => onChange({ [name]: fromLocalField(event.currentTarget.value) })}
    />
  ));
}

/** A time as a `datetime-local` field takes it; empty if it is none. */
export function toLocalField(iso: string): string {
  const time = Date.parse(iso);
  if (Number.isNaN(time)) return "";
  const shifted = new Date(time - new Date(time).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

/** The time in a `datetime-local` field, in ISO 8601; empty if it is none. */
export function fromLocalField(value: string): string {
  const time = Date.parse(value);
  return Number.isNaN(time) ? "" : new Date(time).toISOString();
}
