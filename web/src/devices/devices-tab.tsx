import { Button, Group, SegmentedControl, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { lazy, Suspense, useCallback, useEffect, useMemo, useState } from "react";
import { Failure } from "../elements/failure.tsx";
import { FilterInput } from "../elements/filter-input.tsx";
import { Icon } from "../elements/icon.tsx";
import { Page } from "../elements/page.tsx";
import { Waiting } from "../elements/waiting.tsx";
import { DeviceTable } from "./device-table.tsx";
import { allSelected, noneSelected, selectedIn, withDevice } from "./selected-devices.ts";
import { SelectionActions } from "./selection-actions.tsx";
import { type DeviceList, useDeviceList } from "./use-device-list.ts";
import { useListAddress } from "./use-list-address.ts";

const CreateDevice = lazy(() =>
  import("./create-device.tsx").then((module) => ({ default: module.CreateDevice })),
);

/** All devices: found, sorted, created, and worked on many at a time. */
export function DevicesTab() {
  const { selection, order, select, sort } = useListAddress();
  const [creating, create] = useDisclosure(false);
  const [chosen, setChosen] = useState(noneSelected);
  const list = useDeviceList(selection, order, chosen.kind === "all");
  const { rows, hasMore, readMore } = list;
  const selected = useMemo(() => selectedIn(chosen, rows), [chosen, rows]);

  const onSelect = useCallback(
    (id: string, isSelected: boolean) => setChosen((before) => withDevice(before, id, isSelected)),
    [],
  );
  const selectRead = (all: boolean) =>
    setChosen(all ? { kind: "some", ids: new Set(rows.map(({ id }) => id)) } : noneSelected);

  // biome-ignore lint/correctness/useExhaustiveDependencies: what is selected out of one list means nothing in another
  useEffect(() => setChosen(noneSelected), [selection]);

  return (
    <Page
      title="Devices"
      fills
      actions={
        <Button leftSection={<Icon name="add" size={16} />} onClick={create.open}>
          Add device
        </Button>
      }
    >
      <Group gap="sm" align="end">
        <FilterInput
          label="Filter devices"
          placeholder="ID, name or label"
          filter={selection.filter}
          onFilter={(filter) => select({ ...selection, filter })}
        />
        <SegmentedControl
          aria-label="Show devices that are"
          size="xs"
          value={selection.online === null ? "all" : String(selection.online)}
          onChange={(value) => select({ ...selection, online: value === "all" ? null : value === "true" })}
          data={[
            { value: "all", label: "All" },
            { value: "true", label: "Online" },
            { value: "false", label: "Offline" },
          ]}
        />
        <Text size="sm" c="dimmed" role="status" ml="auto">
          {countOf(list)}
        </Text>
      </Group>
      <SelectionActions
        ids={selected}
        more={hasMore}
        gathering={hasMore && chosen.kind === "all"}
        onSelectMatching={() => setChosen(allSelected)}
        onClear={() => setChosen(noneSelected)}
      />
      {list.error !== null && (
        <Failure error={list.error} title="The devices could not be read" onRetry={list.readAgain} />
      )}
      {list.isPending ? (
        <Waiting />
      ) : rows.length === 0 && list.error === null ? (
        <NothingListed filtered={selection.filter !== "" || selection.online !== null} />
      ) : (
        <DeviceTable
          rows={rows}
          hasMore={hasMore}
          onNearEnd={readMore}
          order={order}
          onSort={sort}
          selected={selected}
          onSelect={onSelect}
          onSelectAll={selectRead}
        />
      )}
      {creating && (
        <Suspense>
          <CreateDevice onClose={create.close} />
        </Suspense>
      )}
    </Page>
  );
}

function NothingListed({ filtered }: { readonly filtered: boolean }) {
  return (
    <Text c="dimmed" py="xl" ta="center">
      {filtered ? "No device matches." : "There are no devices yet: add the first one."}
    </Text>
  );
}

function countOf({ rows, hasMore, isReading, isPending }: DeviceList): string {
  if (isPending) return "Reading";
  const count = rows.length.toLocaleString("en");
  if (hasMore) return isReading ? `${count} devices read, reading on` : `${count} devices read, more follow`;
  return rows.length === 1 ? "1 device" : `${count} devices`;
}
