import { parseConditionText, printConditionText } from "@devmesh/contracts/model/condition-text";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { Autocomplete, Kbd } from "@mantine/core";
import { useDebouncedCallback, useHotkeys } from "@mantine/hooks";
import { Search } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { FilterChip } from "../../../components/filter-chip.tsx";
import { suggestionsFor, termsOf, withoutTerm } from "./condition-terms.ts";
import styles from "./device-filter.module.css";
import { FacetMenu } from "./facet-menu.tsx";

/** Pause in typing after which the list follows, in milliseconds. */
const typingMs = 250;

/** Properties of {@link DeviceFilter}. */
interface DeviceFilterProps {
  /** The condition of the chips. */
  readonly condition: DeviceCondition;
  /** What is typed beside them. */
  readonly typed: string;
  readonly onChange: (changes: { readonly where?: string; readonly filter?: string }) => void;
}

/** A condition over devices: a chip for each term, and a field with suggestions, of which Enter makes chips. */
export function DeviceFilter({ condition, typed, onChange }: DeviceFilterProps) {
  const api = useApi();
  const [text, setText] = useState(typed);
  const [focused, setFocused] = useState(false);
  const [entered, setEntered] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  // A link, or back and forward, changes it, too.
  useEffect(() => setText(typed), [typed]);
  useHotkeys([["/", () => input.current?.focus()]]);
  const report = useDebouncedCallback((changed: string) => {
    if (isValid(changed)) onChange({ filter: changed });
  }, typingMs);
  const { data: facets } = useReading({
    queryKey: [...queryKeys.deviceFacets, ""],
    queryFn: ({ signal }) => api.call("facetDevices", { query: { facets: ["version", "label"] }, signal }),
    enabled: focused,
    staleTime: 30_000,
  });
  const terms = termsOf(condition);
  const parsed = parseConditionText(text);
  const fault = entered && "error" in parsed ? parsed.error : null;
  const suggestions = suggestionsFor(text, {
    labels: facets?.facets.label?.flatMap(({ value }) => value ?? []) ?? [],
    versions: facets?.facets.version?.map(({ value }) => value) ?? [],
  });
  const enter = () => {
    setEntered(true);
    if (text.trim() === "" || !isValid(text)) return;
    const where = printConditionText(condition);
    setText("");
    setEntered(false);
    onChange({ where: `${where} ${text}`.trim(), filter: "" });
  };
  return (
    <>
      <Autocomplete
        ref={input}
        size="xs"
        className={styles.field ?? ""}
        aria-label="Filter devices"
        placeholder="ID, name, label, condition"
        leftSection={<Search size={15} />}
        rightSection={
          text === "" ? (
            <Kbd size="xs" visibleFrom="sm">
              /
            </Kbd>
          ) : null
        }
        rightSectionPointerEvents="none"
        data={[...suggestions]}
        filter={({ options }) => options}
        maxLength={1_024}
        autoComplete="off"
        spellCheck={false}
        value={text}
        error={fault === null ? undefined : `At character ${fault.at + 1}: ${fault.detail}`}
        errorProps={{ role: "alert" }}
        comboboxProps={{ width: 280, position: "bottom-start" }}
        onFocus={() => setFocused(true)}
        onChange={(changed) => {
          setText(changed);
          setEntered(false);
          report(changed);
        }}
        onKeyDown={(event) => {
          // Enter on a suggestion takes that.
          const isChosen = event.currentTarget.getAttribute("aria-activedescendant");
          if (event.key === "Enter" && !isChosen) enter();
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      {terms.map((term) => (
        <FilterChip
          key={term.text}
          subject={term.subject}
          value={term.value}
          {...(term.relation !== undefined && { relation: term.relation })}
          onRemove={() => onChange({ where: withoutTerm(terms, term) })}
        />
      ))}
      <FacetMenu
        condition={condition}
        onAdd={(term) => onChange({ where: `${printConditionText(condition)} ${term}`.trim() })}
      />
    </>
  );
}

function isValid(text: string): boolean {
  return "condition" in parseConditionText(text);
}
