import { TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { Icon } from "./icon.tsx";

/** How long typing must rest before it is told, in milliseconds. */
const typingMs = 250;

/** What a list is narrowed by. */
interface FilterInputProps {
  readonly label: string;
  /** What the filter is looked for in. */
  readonly placeholder: string;
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
}

/** Asks for a part of what is looked for; tells it when typing rests. */
export function FilterInput({ label, placeholder, filter, onFilter }: FilterInputProps) {
  const [typed, setTyped] = useState(filter);
  const tell = useDebouncedCallback(onFilter, typingMs);
  // It may change by other ways than typing: by a link, or back and forth.
  useEffect(() => setTyped(filter), [filter]);
  return (
    <TextInput
      aria-label={label}
      placeholder={placeholder}
      leftSection={<Icon name="search" size={16} />}
      value={typed}
      maxLength={256}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        tell(event.currentTarget.value);
      }}
      w={{ base: "100%", xs: 260 }}
      type="search"
    />
  );
}
