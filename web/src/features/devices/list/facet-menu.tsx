import { printConditionText } from "@devmesh/contracts/model/condition-text";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { type FacetName, facetNames } from "@devmesh/contracts/model/device-facets";
import { Popover, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Plus } from "lucide-react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { Failure } from "../../../components/failure.tsx";
import { countText } from "../../../components/number-text.ts";
import { Waiting } from "../../../components/waiting.tsx";
import styles from "./facet-menu.module.css";

const headings: Readonly<Record<FacetName, string>> = {
  version: "Version",
  label: "Label",
  problem: "Problem",
};

/** Values of each facet in the menu. */
const mostValues = 8;

/** Properties of {@link FacetMenu}. */
interface FacetMenuProps {
  readonly condition: DeviceCondition;
  /** Called with the term of the chosen value, as text. */
  readonly onAdd: (term: string) => void;
}

/** What the listed devices have, with how many have it; a click narrows the list to those. */
export function FacetMenu({ condition, onAdd }: FacetMenuProps) {
  const [opened, menu] = useDisclosure(false);
  return (
    <Popover opened={opened} onChange={menu.toggle} position="bottom-start" trapFocus returnFocus>
      <Popover.Target>
        <UnstyledButton className={styles.opener} aria-expanded={opened} onClick={menu.toggle}>
          <Plus size={14} aria-hidden="true" /> Filter
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown p={12} aria-label="Filter by what devices have">
        <Facets
          condition={condition}
          onChoose={(term) => {
            menu.close();
            onAdd(term);
          }}
        />
      </Popover.Dropdown>
    </Popover>
  );
}

interface FacetsProps {
  readonly condition: DeviceCondition;
  readonly onChoose: (term: string) => void;
}

function Facets({ condition, onChoose }: FacetsProps) {
  const api = useApi();
  const where = printConditionText(condition);
  const { data, error, refetch } = useReading({
    queryKey: [...queryKeys.deviceFacets, where],
    queryFn: ({ signal }) =>
      api.call("facetDevices", {
        query: { facets: [...facetNames], ...(where !== "" && { where: condition }) },
        signal,
      }),
    staleTime: 0,
  });
  if (error !== null)
    return <Failure error={error} title="The counts could not be read" onRetry={() => void refetch()} />;
  if (data === undefined) return <Waiting rows={4} />;
  return (
    <div className={styles.facets}>
      {facetNames.map((facet) => {
        const values = data.facets[facet]?.slice(0, mostValues) ?? [];
        return (
          <section key={facet} aria-label={headings[facet]}>
            <h3 className={styles.heading}>{headings[facet]}</h3>
            {values.length === 0 && <p className={styles.none}>none</p>}
            {values.map(({ value, count }) => (
              <UnstyledButton
                key={value ?? ""}
                className={styles.value}
                onClick={() => onChoose(termOf(facet, value))}
              >
                <span className={styles.name}>{value?.replaceAll("_", " ") ?? "no version"}</span>
                <span className={styles.count}>{countText(count)}</span>
              </UnstyledButton>
            ))}
          </section>
        );
      })}
      <section aria-label="Presence">
        <h3 className={styles.heading}>Presence</h3>
        {["online:true", "online:false", "silent:24h", "problem:any"].map((term) => (
          <UnstyledButton key={term} className={styles.value} onClick={() => onChoose(term)}>
            <span className={styles.name}>{presences[term]}</span>
          </UnstyledButton>
        ))}
      </section>
    </div>
  );
}

const presences: Readonly<Record<string, string>> = {
  "online:true": "Online",
  "online:false": "Offline",
  "silent:24h": "Silent for 24 h",
  "problem:any": "With a problem",
};

function termOf(facet: FacetName, value: string | null): string {
  if (facet === "problem") return `problem:${value}`;
  return printConditionText(
    facet === "version" ? { version: { in: [value] } } : { labels: { all: [value ?? ""] } },
  );
}
