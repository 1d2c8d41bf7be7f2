import { TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { Search } from "lucide-react";
import { useEffect, useState } from "react";

/** Pause in typing after which the filter changes, in milliseconds. */
const typingMs = 250;

/** Properties of {@link FilterInput}. */
interface FilterInputProps {
  readonly label: string;
  /** The searched properties. */
  readonly placeholder: string;
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
}

/** A search field that reports its text after a pause in typing. */
export function FilterInput({ label, placeholder, filter, onFilter }: FilterInputProps) {
  const [typed, setTyped] = useState(filter);
  const report = useDebouncedCallback(onFilter, typingMs);
  // A link, or back and forward, changes the filter, too.
  useEffect(() => setTyped(filter), [filter]);
  return (
    <TextInput
      aria-label={label}
      placeholder={placeholder}
      leftSection={<Search size={16} />}
      value={typed}
      maxLength={256}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        report(event.currentTarget.value);
      }}
      w={{ base: "100%", xs: 260 }}
      type="search"
    />
  );
}
