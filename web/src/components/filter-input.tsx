import { TextInput, type TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { Search } from "lucide-react";
import { useEffect, useState } from "react";

/** Pause in typing after which the filter changes, in milliseconds. */
const typingMs = 250;

/** Properties of {@link FilterInput}, and others of its text field. */
interface FilterInputProps extends TextInputProps {
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
}

/** A search field that reports its text after a pause in typing. */
export function FilterInput({ filter, onFilter, ...props }: FilterInputProps) {
  const [typed, setTyped] = useState(filter);
  const report = useDebouncedCallback(onFilter, typingMs);
  // A link, or back and forward, changes the filter, too.
  useEffect(() => setTyped(filter), [filter]);
  return (
    <TextInput
      size="xs"
      type="search"
      leftSection={<Search size={16} />}
      value={typed}
      maxLength={256}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        report(event.currentTarget.value);
      }}
      w={{ base: "100%", xs: 260 }}
      {...props}
    />
  );
}
