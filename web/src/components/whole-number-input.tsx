import { NumberInput, type NumberInputProps } from "@mantine/core";
import { numberFormat } from "./locale.ts";

/** A field for a whole number that is not negative, with groups of digits in the current locale. */
export function WholeNumberInput(props: NumberInputProps) {
  const parts = numberFormat(sample).formatToParts(1_234_567.8);
  const separator = (type: "group" | "decimal") => parts.find((part) => part.type === type)?.value ?? "";
  return (
    <NumberInput
      // Its own buttons are too small to touch; the arrow keys do the same.
      hideControls
      allowDecimal={false}
      allowNegative={false}
      thousandSeparator={separator("group")}
      decimalSeparator={separator("decimal")}
      {...props}
    />
  );
}

const sample = { maximumFractionDigits: 1 };
