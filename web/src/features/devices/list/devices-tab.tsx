import { Button, Code, Group, SegmentedControl, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Cpu, Plus } from "lucide-react";
import { Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { EmptyState } from "../../../components/empty-state.tsx";
import { FilterInput } from "../../../components/filter-input.tsx";
import { lazyView } from "../../../components/lazy-view.ts";
import { ListTab } from "../../../components/list-tab.tsx";
import { MoreFilters } from "../../../components/more-filters.tsx";
import { countText } from "../../../components/number-text.ts";
import { useAddress } from "../../../components/use-address.ts";
import type { DeviceConditions } from "../shared/device-lists.ts";
import { type DeviceOrder, sortableColumns, usualOrder } from "./device-order.ts";
import { DeviceTable, type SelectDevice } from "./device-table.tsx";
import { allSelected, idsBetween, noneSelected, selectedIn, withDevices } from "./selected-devices.ts";
import { SelectionActions } from "./selection-actions.tsx";
import { type DeviceList, useDeviceList } from "./use-device-list.ts";

const CreateDevice = lazyView(async () => (await import("./create-device.tsx")).CreateDevice);

const defaults = { filter: "", online: "", sort: "created", direction: "" };

/** All devices: filtered, sorted, created, and changed many at a time. */
export function DevicesTab() {
  const [{ filter, online, sort, direction }, change] = useAddress(defaults);
  const selection = useMemo<DeviceConditions>(
    () => ({ filter, online: online === "true" ? true : online === "false" ? false : null }),
    [filter, online],
  );
  const order = useMemo<DeviceOrder>(() => {
    const usual = usualOrder(sortableColumns.find((name) => name === sort) ?? "created");
    return direction === "" ? usual : { ...usual, descending: direction === "descending" };
  }, [sort, direction]);
  const [creating, create] = useDisclosure(false);
  const [chosen, setChosen] = useState(noneSelected);
  const list = useDeviceList(selection, order, chosen.kind === "all");
  const { rows, hasMore, readMore } = list;
  const selected = useMemo(() => selectedIn(chosen, rows), [chosen, rows]);

  const shown = useRef(rows);
  useEffect(() => {
    shown.current = rows;
  }, [rows]);
  const lastSelected = useRef<string | null>(null);
  const onSelect = useCallback<SelectDevice>((id, isSelected, range) => {
    const ids = range ? idsBetween(shown.current, lastSelected.current, id) : [id];
    lastSelected.current = id;
    setChosen((before) => withDevices(before, ids, isSelected));
  }, []);
  const selectRead = (all: boolean) =>
    setChosen(all ? { kind: "some", ids: new Set(rows.map(({ id }) => id)) } : noneSelected);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another list has no selected devices
  useEffect(() => setChosen(noneSelected), [selection]);

  return (
    <>
      <ListTab
        title="Devices"
        fills
        actions={
          <Button leftSection={<Plus size={16} />} onClick={create.open}>
            Add device
          </Button>
        }
        filters={
          <>
            <Group gap="sm" align="end">
              <FilterInput
                aria-label="Filter devices"
                placeholder="ID, name or label"
                filter={filter}
                onFilter={(changed) => change({ filter: changed })}
                w={{ base: "auto", xs: 260 }}
                flex={{ base: "1 1 10rem", xs: "none" }}
              />
              <MoreFilters active={selection.online === null ? 0 : 1}>
                <SegmentedControl
                  aria-label="Show devices that are"
                  size="xs"
                  value={selection.online === null ? "all" : online}
                  onChange={(value) => change({ online: value === "all" ? "" : value })}
                  data={[
                    { value: "all", label: "All" },
                    { value: "true", label: "Online" },
                    { value: "false", label: "Offline" },
                  ]}
                />
              </MoreFilters>
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
          </>
        }
        error={list.error}
        failure="The devices could not be read"
        onRetry={list.readAgain}
        isPending={list.isPending}
        empty={
          rows.length > 0 ? null : filter !== "" || selection.online !== null ? (
            <EmptyState
              title="No device matches."
              next="Show all devices"
              onNext={() => change({ filter: "", online: "" })}
            />
          ) : (
            <EmptyState
              Icon={Cpu}
              title="There are no devices yet"
              next="Add the first device"
              onNext={create.open}
            >
              Add one of yours, or run simulated ones: <Code>npm run fleet</Code>
            </EmptyState>
          )
        }
      >
        <DeviceTable
          rows={rows}
          hasMore={hasMore}
          onNearEnd={readMore}
          order={order}
          onSort={({ column, descending }) => {
            const isUsual = descending === usualOrder(column).descending;
            change({ sort: column, direction: isUsual ? "" : descending ? "descending" : "ascending" });
          }}
          selected={selected}
          onSelect={onSelect}
          onSelectAll={selectRead}
        />
      </ListTab>
      {creating && (
        <Suspense>
          <CreateDevice onClose={create.close} />
        </Suspense>
      )}
    </>
  );
}

function countOf({ rows, hasMore, total, isReading, isPending, error }: DeviceList): string {
  if (isPending) return "Reading";
  if (error !== null && rows.length === 0) return "";
  const count = countText(rows.length);
  if (hasMore && total !== null) return `${count} of ${countText(total)} devices read`;
  if (hasMore) return isReading ? `${count} devices read, reading on` : `${count} devices read, more follow`;
  return rows.length === 1 ? "1 device" : `${count} devices`;
}
