import { printConditionText } from "@devmesh/contracts/model/condition-text";
import { Button, Code, Group, Text } from "@mantine/core";
import { useDisclosure, useElementSize, useHotkeys, useMediaQuery } from "@mantine/hooks";
import { Cpu, Download, Plus } from "lucide-react";
import { type CSSProperties, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { saveCsv } from "../../../components/csv.ts";
import { EmptyState } from "../../../components/empty-state.tsx";
import { IconButton } from "../../../components/icon-button.tsx";
import { lazyView } from "../../../components/lazy-view.ts";
import { ListTab } from "../../../components/list-tab.tsx";
import { countText } from "../../../components/number-text.ts";
import { peekWidth } from "../../../components/peek-width.ts";
import { phoneQuery } from "../../../components/phone.ts";
import { useAddress } from "../../../components/use-address.ts";
import type { DeviceConditions } from "../shared/device-lists.ts";
import { useWantedSelection } from "../shared/wanted-selection.ts";
import { ColumnMenu } from "./column-menu.tsx";
import { conditionOf } from "./condition-terms.ts";
import { columnsIn, columnsWithin, pointersOf, usualColumns } from "./device-columns.ts";
import { DeviceFilter } from "./device-filter.tsx";
import { type DeviceOrder, sortableColumns, usualOrder } from "./device-order.ts";
import { DeviceTable, type SelectDevice } from "./device-table.tsx";
import { allSelected, idsBetween, noneSelected, selectedIn, withDevices } from "./selected-devices.ts";
import { SelectionActions } from "./selection-actions.tsx";
import { type DeviceList, useDeviceList } from "./use-device-list.ts";
import { ViewMenu } from "./view-menu.tsx";

const CreateDevice = lazyView(async () => (await import("./create-device.tsx")).CreateDevice);
const DevicePeek = lazyView(async () => (await import("./device-peek.tsx")).DevicePeek);

const defaults = {
  where: "",
  filter: "",
  online: "",
  sort: "created",
  direction: "",
  columns: usualColumns,
  peek: "",
};

/** All devices: found by a condition, sorted, opened beside the list, and changed many at a time. */
export function DevicesTab() {
  const [address, change] = useAddress(defaults);
  const { where, filter, online, sort, direction, columns: columnNames, peek } = address;
  // `online` comes from links of earlier releases.
  const chips = useMemo(() => conditionOf(where, online === "" ? "" : `online:${online}`), [where, online]);
  const columns = useMemo(() => columnsIn(columnNames), [columnNames]);
  const selection = useMemo<DeviceConditions>(
    () => ({
      condition: conditionOf(printConditionText(chips), filter),
      pointers: pointersOf(columns),
    }),
    [chips, filter, columns],
  );
  const isFiltered = printConditionText(selection.condition) !== "";
  const order = useMemo<DeviceOrder>(() => {
    const usual = usualOrder(sortableColumns.find((name) => name === sort) ?? "created");
    return direction === "" ? usual : { ...usual, descending: direction === "descending" };
  }, [sort, direction]);
  const [creating, create] = useDisclosure(false);
  const [chosen, setChosen] = useState(noneSelected);
  const [wanted, setWanted] = useWantedSelection();
  const [gathersAll, setGathersAll] = useState(false);
  const list = useDeviceList(selection, order, chosen.kind === "all" || gathersAll);
  const { rows, hasMore, readMore } = list;
  const selected = useMemo(() => selectedIn(chosen, rows), [chosen, rows]);
  // The panel beside the list needs room of both.
  const isWide = useMediaQuery("(min-width: 62em)", true, { getInitialValueInEffect: false });

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
  const isPhone = useMediaQuery(phoneQuery, false, { getInitialValueInEffect: false });
  const [, navigate] = useLocation();
  const onOpen = useCallback(
    (id: string) => (isPhone ? navigate(`/devices/${id}`) : change({ peek: id })),
    [isPhone, navigate, change],
  );
  const selectRead = (all: boolean) =>
    setChosen(all ? { kind: "some", ids: new Set(rows.map(({ id }) => id)) } : noneSelected);

  const whereText = printConditionText(selection.condition);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another list has no selected devices
  useEffect(() => setChosen(noneSelected), [whereText]);
  useEffect(() => {
    if (wanted === null) return;
    setWanted(() => null);
    setChosen({ kind: "some", ids: wanted });
    // They may be on pages that are not read yet.
    setGathersAll(true);
  }, [wanted, setWanted]);
  useHotkeys([
    ["j", () => focusFirstRow()],
    ["k", () => focusFirstRow()],
  ]);

  const place = peek === "" ? -1 : rows.findIndex(({ id }) => id === peek);
  const { ref: frame, width } = useElementSize();
  const besideWidth = peek !== "" && isWide ? peekWidth : 0;
  return (
    <div ref={frame} style={{ paddingInlineEnd: besideWidth, "--peek": `${besideWidth}px` } as CSSProperties}>
      <ListTab
        title="Devices"
        count={list.total === null || list.isPending || isFiltered ? undefined : countText(list.total)}
        fills
        actions={
          <Button leftSection={<Plus size={16} />} onClick={create.open}>
            Add device
          </Button>
        }
        filters={
          <>
            <Group gap={8}>
              <DeviceFilter
                condition={chips}
                typed={filter}
                onChange={(changes) =>
                  change({ ...changes, ...(changes.where !== undefined && { online: "" }) })
                }
              />
              <ViewMenu />
              <Group gap={4} ml="auto" wrap="nowrap">
                <Text size="sm" c="dimmed" role="status">
                  {countOf(list)}
                </Text>
                <IconButton
                  label="Save the listed devices as CSV"
                  disabled={rows.length === 0}
                  onClick={() =>
                    saveCsv("devices.csv", [
                      ["id", ...columns.map(({ name }) => name)],
                      ...rows.map((row) => [row.id, ...columns.map(({ text }) => text(row))]),
                    ])
                  }
                >
                  <Download size={16} />
                </IconButton>
                <ColumnMenu
                  columns={columns}
                  example={rows[0]?.id ?? null}
                  onChange={(names) => change({ columns: names.join(",") || "name" })}
                />
              </Group>
            </Group>
            <SelectionActions
              ids={selected}
              matching={chosen.kind === "all" && chosen.except.size === 0 ? whereText : null}
              more={hasMore}
              gathering={hasMore && (chosen.kind === "all" || gathersAll)}
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
          rows.length > 0 ? null : isFiltered ? (
            <EmptyState
              title="No device matches."
              next="Show all devices"
              onNext={() => change({ where: "", filter: "", online: "" })}
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
          columns={isPhone || width === 0 ? columns : columnsWithin(columns, width - besideWidth)}
          isPhone={isPhone}
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
          opened={peek}
          onOpen={onOpen}
        />
      </ListTab>
      {peek !== "" && (
        <Suspense>
          <DevicePeek
            id={peek}
            place={place}
            count={list.total ?? rows.length}
            onMove={(by) => {
              const beside = rows[place + by];
              if (beside !== undefined) change({ peek: beside.id });
            }}
            onClose={() => change({ peek: "" })}
          />
        </Suspense>
      )}
      {creating && (
        <Suspense>
          <CreateDevice onClose={create.close} />
        </Suspense>
      )}
    </div>
  );
}

/** Begins to walk through the rows by keys, unless that is under way. */
function focusFirstRow(): void {
  if (document.activeElement?.closest("tbody") !== null) return;
  document.querySelector<HTMLElement>("tbody a")?.focus();
}

function countOf({ rows, hasMore, total, isReading, isPending, error }: DeviceList): string {
  if (isPending) return "Reading";
  if (error !== null && rows.length === 0) return "";
  const count = countText(rows.length);
  if (hasMore && total !== null) return `${count} of ${countText(total)} devices read`;
  if (hasMore) return isReading ? `${count} devices read, reading on` : `${count} devices read, more follow`;
  return rows.length === 1 ? "1 device" : `${count} devices`;
}
