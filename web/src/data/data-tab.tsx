import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { Button, Group, Text, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { useSearchParams } from "wouter";
import { Failure } from "../elements/failure.tsx";
import { Icon } from "../elements/icon.tsx";
import { Page } from "../elements/page.tsx";
import { Waiting } from "../elements/waiting.tsx";
import { ExportButtons } from "./export-buttons.tsx";
import { fromLocalField, toLocalField } from "./local-time.ts";
import { RecordChart } from "./record-chart.tsx";
import { RecordDialog } from "./record-dialog.tsx";
import { RecordTable } from "./record-table.tsx";
import { useRecords } from "./use-records.ts";
import { useSelectionAddress } from "./use-selection-address.ts";

/** How long typing must rest before the server is asked, in milliseconds. */
const typingMs = 300;

/** What devices have published: the newest first, followed live, filtered and exported. */
export function DataTab() {
  const [selection, select] = useSelectionAddress();
  const [paused, setPaused] = useState(false);
  const [params, setParams] = useSearchParams();
  const charted = params.get("view") === "chart";
  const [opened, setOpened] = useState<DataRecord | null>(null);
  const records = useRecords(selection, !paused && !charted);
  const [filter, setFilter] = useState(selection.filter);
  const [device, setDevice] = useState(selection.device);
  const selectSoon = useDebouncedCallback(select, typingMs);
  // The address may change by other ways than typing: by a link, or back and forth.
  useEffect(() => setFilter(selection.filter), [selection.filter]);
  useEffect(() => setDevice(selection.device), [selection.device]);

  return (
    <Page
      title="Data"
      part={charted ? "Chart" : undefined}
      fills={!charted}
      actions={
        <>
          <Button
            size="xs"
            variant="default"
            onClick={() => setParams((before) => withView(before, charted ? null : "chart"))}
          >
            {charted ? "Show records" : "Show chart"}
          </Button>
          <Button size="xs" variant="default" onClick={() => setPaused(!paused)}>
            {paused ? "Resume" : "Pause"}
          </Button>
          <ExportButtons selection={selection} />
        </>
      }
    >
      <Group gap="sm" align="end">
        <TextInput
          label="Filter"
          placeholder="Part of topic or payload"
          type="search"
          leftSection={<Icon name="search" size={16} />}
          value={filter}
          maxLength={4096}
          onChange={(event) => {
            setFilter(event.currentTarget.value);
            selectSoon({ filter: event.currentTarget.value, device: device });
          }}
        />
        <TextInput
          label="Device"
          placeholder="ID"
          value={device}
          maxLength={256}
          spellCheck={false}
          onChange={(event) => {
            const id = event.currentTarget.value.trim();
            setDevice(id);
            selectSoon({ filter, device: id });
          }}
        />
        <TextInput
          label="From"
          type="datetime-local"
          step={1}
          value={toLocalField(selection.since)}
          onChange={(event) => select({ since: fromLocalField(event.currentTarget.value) })}
        />
        <TextInput
          label="Until"
          type="datetime-local"
          step={1}
          value={toLocalField(selection.until)}
          onChange={(event) => select({ until: fromLocalField(event.currentTarget.value) })}
        />
        {!charted && (
          <Text size="sm" c="dimmed" ml="auto">
            {countOf(records)}
            {paused ? " · paused" : records.stream === "live" ? " · live" : ""}
          </Text>
        )}
      </Group>
      {records.error !== null && (
        <Failure error={records.error} title="The records could not be read" onRetry={records.readAgain} />
      )}
      {records.isFull && !charted && (
        <Text size="sm" c="dimmed">
          No more than these are held at once: narrow the range for earlier ones, or export them.
        </Text>
      )}
      {charted ? (
        <RecordChart selection={selection} live={!paused} />
      ) : records.isPending ? (
        <Waiting />
      ) : records.records.length === 0 && records.error === null ? (
        <Text c="dimmed" py="xl" ta="center">
          No record matches.
        </Text>
      ) : (
        <RecordTable
          records={records.records}
          filter={selection.filter}
          hasMore={records.hasEarlier && !records.isFull && records.error === null}
          onNearEnd={records.readMore}
          onOpen={setOpened}
        />
      )}
      {opened !== null && <RecordDialog record={opened} onClose={() => setOpened(null)} />}
    </Page>
  );
}

/** The address with what is shown of the records; null for their list. */
function withView(query: URLSearchParams, view: "chart" | null): URLSearchParams {
  const changed = new URLSearchParams(query);
  if (view === null) changed.delete("view");
  else changed.set("view", view);
  return changed;
}

function countOf({ records, hasEarlier, isReading }: ReturnType<typeof useRecords>): string {
  const count = records.length.toLocaleString("en");
  if (hasEarlier)
    return isReading ? `${count} records read, reading on` : `${count} records read, more before`;
  return records.length === 1 ? "1 record" : `${count} records`;
}
