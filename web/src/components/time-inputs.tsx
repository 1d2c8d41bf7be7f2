import { useState } from "react";
import { TimeField, timeFieldFault, timeFieldText, timeInField } from "./time-field.tsx";

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

/** Fields for a range of time. What is typed counts from Enter on, or once the field is left. */
export function TimeInputs({ range, onChange }: TimeInputsProps) {
  return bounds.map(({ name, label }) => (
    <Bound
      key={`${name} ${range[name]}`}
      label={label}
      value={range[name]}
      onChange={(time) => onChange({ [name]: time })}
    />
  ));
}

interface BoundProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (time: string) => void;
}

function Bound({ label, value, onChange }: BoundProps) {
  const [text, setText] = useState(() => timeFieldText(value));
  const take = (typed: string) => {
    if (typed === timeFieldText(value)) return;
    const time = typed.trim() === "" ? "" : timeInField(typed);
    if (time !== null) onChange(time);
  };
  return (
    <TimeField
      size="xs"
      w={{ base: "100%", xs: 236 }}
      label={label}
      isInline
      value={text}
      error={timeFieldFault(text)}
      onChange={(typed, isPicked) => {
        setText(typed);
        if (isPicked) take(typed);
      }}
      onBlur={() => take(text)}
      onKeyDown={({ key }) => key === "Enter" && take(text)}
    />
  );
}
