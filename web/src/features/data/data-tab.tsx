import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import { Anchor, Button, Code, Group, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterInput } from "../../components/filter-input.tsx";
import { ListTab } from "../../components/list-tab.tsx";
import { MoreFilters } from "../../components/more-filters.tsx";
import { countText } from "../../components/number-text.ts";
import { TimeInputs } from "../../components/time-inputs.tsx";
import { useAddress } from "../../components/use-address.ts";
import { chartViewDefaults, chartViewIn } from "./chart-view.ts";
import { ExportButtons } from "./export-buttons.tsx";
import { RecordChart } from "./record-chart.tsx";
import { RecordDialog } from "./record-dialog.tsx";
import type { RecordChoice } from "./record-selection.ts";
import { RecordTable } from "./record-table.tsx";
import { useRecords } from "./use-records.ts";

const all: RecordChoice = { filter: "", device: "", since: "", until: "" };
const defaults = { ...all, ...chartViewDefaults, view: "" };

/** What devices have published: the newest first, followed live, filtered and exported. */
export function DataTab() {
  const [{ filter, device, since, until, view, zoom, zone }, change] = useAddress(defaults);
  const selection = useMemo(() => ({ filter, device, since, until }), [filter, device, since, until]);
  const [paused, setPaused] = useState(false);
  const charted = view === "chart";
  const [opened, setOpened] = useState<DataRecord | null>(null);
  const records = useRecords(selection, !paused && !charted);

  return (
    <>
      <ListTab
        title="Data"
        part={charted ? "Chart" : undefined}
        fills={!charted}
        state={
          !charted &&
          records.error === null &&
          !records.isPending && (
            <Text size="sm" c="dimmed">
              {countOf(records)}
              {paused ? " · paused" : records.stream === "live" ? " · live" : ""}
            </Text>
          )
        }
        actions={
          <>
            <Button
              size="xs"
              variant="default"
              onClick={() => change({ view: charted ? "" : "chart" }, { push: true })}
            >
              {charted ? "Show records" : "Show chart"}
            </Button>
            <Button size="xs" variant="default" onClick={() => setPaused(!paused)}>
              {paused ? "Resume" : "Pause"}
            </Button>
            <ExportButtons selection={selection} />
          </>
        }
        filters={
          <>
            <Group gap="sm">
              <FilterInput
                aria-label="Filter"
                placeholder="Part of topic or payload"
                maxLength={4096}
                w="auto"
                flex={{ base: "1 1 60%", sm: "none" }}
                filter={filter}
                onFilter={(text) => change({ filter: text })}
              />
              <MoreFilters active={[device, since, until].filter((value) => value !== "").length}>
                <FilterInput
                  aria-label="Device"
                  placeholder="Device ID"
                  type="text"
                  leftSection={null}
                  spellCheck={false}
                  w="auto"
                  filter={device}
                  onFilter={(text) => change({ device: text.trim() })}
                />
                <TimeInputs range={selection} onChange={(bounds) => change({ ...bounds, zoom: "" })} />
              </MoreFilters>
            </Group>
            {records.isFull && !charted && (
              <Text size="sm" c="dimmed">
                The page holds no more records: narrow the range for earlier ones, or export them.
              </Text>
            )}
          </>
        }
        error={records.error}
        failure="The records could not be read"
        onRetry={records.readAgain}
        isPending={records.isPending && !charted}
        empty={
          charted || records.records.length > 0 ? null : selection.filter + device + since + until === "" ? (
            <NoRecords />
          ) : (
            <EmptyState title="No record matches." next="Show all records" onNext={() => change(all)} />
          )
        }
      >
        {charted ? (
          <RecordChart
            selection={selection}
            live={!paused}
            view={chartViewIn({ zoom, zone })}
            onView={change}
          />
        ) : (
          <RecordTable
            records={records.records}
            filter={filter}
            hasMore={records.hasEarlier && !records.isFull && records.error === null}
            onNearEnd={records.readMore}
            onOpen={setOpened}
          />
        )}
      </ListTab>
      {opened !== null && <RecordDialog record={opened} onClose={() => setOpened(null)} />}
    </>
  );
}

/** Explains where records come from. */
function NoRecords() {
  return (
    <EmptyState title="No records yet">
      No device has published yet: what one sends to a topic below{" "}
      <Code>{deviceTopics.record("ID", "")}</Code> appears here. Open one of the{" "}
      <Anchor component={Link} href="/devices" inherit underline="always">
        devices
      </Anchor>{" "}
      for a command to try it, or run simulated ones: <Code>npm run fleet</Code>
    </EmptyState>
  );
}

function countOf({ records, hasEarlier, isReading }: ReturnType<typeof useRecords>): string {
  const count = countText(records.length);
  if (hasEarlier)
    return isReading ? `${count} records read, reading on` : `${count} records read, more before`;
  return records.length === 1 ? "1 record" : `${count} records`;
}
