import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { describe, expect, test } from "@jest/globals";
import { inOrder } from "../src/features/devices/list/device-order.ts";
import { meets } from "../src/features/devices/shared/device-conditions.ts";
import {
  applyChanges,
  type DeviceChange,
  type DevicePages,
  type DeviceSelection,
} from "../src/features/devices/shared/device-lists.ts";
import { type DeviceTableRow, rowOf } from "../src/features/devices/shared/device-row.ts";
import { deviceOf } from "./devices.ts";

const all: DeviceSelection = { condition: {}, pointers: [], order: "asc" };
const under = (condition: DeviceCondition): DeviceSelection => ({ ...all, condition });
const row = (id: string, changes: Partial<DeviceTableRow> = {}): DeviceTableRow => ({
  ...rowOf(deviceOf(id)),
  ...changes,
});

function pagesOf(pages: readonly (readonly DeviceTableRow[])[], next: string | null = null): DevicePages {
  return {
    pages: pages.map((rows, at) => ({
      rows,
      next: at === pages.length - 1 ? next : String(at),
      total: null,
    })),
    pageParams: pages.map((_, at) => (at === 0 ? null : String(at - 1))),
  };
}
const idsOf = ({ pages }: DevicePages) => pages.map(({ rows }) => rows.map(({ id }) => id));
const at = "2026-02-01T00:00:00.000Z";

describe("a list of devices that is kept up to date", () => {
  test("shows presence and changes in place and leaves other pages as they are", () => {
    const before = pagesOf([[row("a"), row("b")], [row("c")]]);
    const { pages } = applyChanges(before, all, [
      { kind: "presence", id: "b", online: true, at },
      { kind: "row", row: row("b", { name: "B", online: true, lastSeen: at }) },
    ]);
    expect(pages.pages[0]?.rows[1]).toMatchObject({ id: "b", name: "B", online: true, lastSeen: at });
    expect(pages.pages[0]?.rows[0]).toBe(before.pages[0]?.rows[0]);
    expect(pages.pages[1]).toBe(before.pages[1]);
  });

  test("keeps a device under a filter for its only label, also where that is no array", () => {
    const labelled = (id: string, labels: string | string[]) => {
      const device = deviceOf(id);
      return rowOf({ ...device, shadow: { ...device.shadow, tags: { labels } } });
    };
    const changed = [labelled("a", "roof"), labelled("b", ["roof"]), labelled("c", "cellar")];
    const changes = changed.map((row): DeviceChange => ({ kind: "row", row }));
    const { pages } = applyChanges(
      pagesOf([changed.slice(0, 2)]),
      under({ text: { all: ["roof"] } }),
      changes,
    );
    expect(pages.pages.flatMap(({ rows }) => rows.map(({ labels }) => labels))).toEqual([["roof"], ["roof"]]);
  });

  test("drops what is deleted, and takes up what is new at its end, also what was made anew", () => {
    const changes: DeviceChange[] = [
      { kind: "deleted", id: "a" },
      { kind: "row", row: row("d") },
      { kind: "row", row: row("e") },
      { kind: "deleted", id: "e" },
      { kind: "presence", id: "d", online: true, at },
    ];
    const { pages } = applyChanges(pagesOf([[row("a"), row("b")]]), all, changes);
    expect(idsOf(pages)).toEqual([["b", "d"]]);
    expect(pages.pages[0]?.rows[1]?.online).toBe(true);
  });

  test("leaves new devices to the pages that are still to come", () => {
    const { pages, unknown } = applyChanges(
      pagesOf([[row("a", { online: true })]], "more"),
      under({ online: true }),
      [
        { kind: "row", row: row("z", { online: true }) },
        { kind: "presence", id: "y", online: true, at },
      ],
    );
    expect(idsOf(pages)).toEqual([["a"]]);
    expect(unknown).toEqual([]);
  });

  test("has the newest device first where it begins with those, also before all are read", () => {
    const newest = { ...all, order: "desc" as const };
    const changes: DeviceChange[] = [
      { kind: "row", row: row("old", { createdAt: "2025-01-01T00:00:00.000Z" }) },
      { kind: "row", row: row("d", { createdAt: at }) },
      { kind: "row", row: row("e", { createdAt: "2026-02-01T00:00:00.001Z" }) },
    ];
    const unread = applyChanges(pagesOf([[row("b")], [row("a")]], "more"), newest, changes);
    expect(idsOf(unread.pages)).toEqual([["e", "d", "b"], ["a"]]);
    const whole = applyChanges(pagesOf([[row("b")]]), newest, [{ kind: "row", row: row("a") }]);
    expect(idsOf(whole.pages)).toEqual([["a", "b"]]);
  });

  test("holds only what is selected", () => {
    const selection = under({ text: { all: ["pump"] }, online: true });
    const listed = pagesOf([[row("pump-1", { online: true }), row("pump-2", { online: true })]]);
    const { pages, unknown } = applyChanges(listed, selection, [
      { kind: "presence", id: "pump-1", online: false, at },
      { kind: "row", row: row("lamp", { online: true }) },
      { kind: "row", row: row("x", { online: true, labels: ["pumps"] }) },
      { kind: "presence", id: "who", online: true, at },
    ]);
    expect(idsOf(pages)).toEqual([["pump-2", "x"]]);
    expect(unknown).toEqual(["who"]);
  });
});

test("a list by what only the server can say keeps its devices, and takes up none by itself", () => {
  const { pages } = applyChanges(
    pagesOf([[row("a", { problems: ["topic"] })]]),
    under({ problem: { in: ["any"] } }),
    [
      { kind: "row", row: row("a", { name: "A" }) },
      { kind: "row", row: row("b") },
    ],
  );
  expect(pages.pages[0]?.rows).toMatchObject([{ id: "a", name: "A", problems: ["topic"] }]);
});

test.each<[DeviceCondition, boolean | null]>([
  [{}, true],
  [{ labels: { all: ["pump"], none: ["spare"] }, version: { in: ["1.2", null] } }, true],
  [{ labels: { none: ["pump"] } }, false],
  [{ version: { not_in: ["1.2"] } }, false],
  [{ online: false }, false],
  [{ silent_for: "PT24H" }, false],
  [{ seen_within: "PT24H" }, null],
  [{ shadow: [{ pointer: "/state/reported/a", is: 1 }] }, null],
  [{ online: false, problem: { in: ["any"] } }, false],
])("a row meets %j: %s", (condition, expected) => {
  expect(meets(row("a", { online: true, labels: ["pump"], firmware: "1.2" }), condition)).toBe(expected);
});

describe("the order of devices", () => {
  const rows = [
    row("a", { firmware: "2" }),
    row("b"),
    row("c", { firmware: "1" }),
    row("d", { firmware: "2" }),
  ];
  const ids = (ordered: readonly DeviceTableRow[]) => ordered.map(({ id }) => id).join("");

  test("is by value, then by id; those without a value are last both ways", () => {
    const named = rows.map((one) => ({ ...one, name: one.firmware }));
    expect(ids(inOrder(named, { column: "name", descending: false }, []))).toBe("cadb");
    expect(ids(inOrder(named, { column: "name", descending: true }, []))).toBe("adcb");
  });

  test("is that of the server where it has one: none is less, and equal ones are in the order of creation", () => {
    const created = rows.map((one, nth) => ({ ...one, createdAt: `2026-01-0${9 - nth}T00:00:00.000Z` }));
    expect(ids(inOrder(created, { column: "firmware", descending: false }, []))).toBe("bcda");
    expect(ids(inOrder(created, { column: "firmware", descending: true }, []))).toBe("adcb");
  });

  test("is the same when it begins at an earlier one, of which some are gone, changed or new", () => {
    const order = { column: "firmware", descending: false } as const;
    const before = inOrder(rows, order, []);
    const now = [
      row("a", { firmware: "0" }),
      row("d", { firmware: "2" }),
      row("e", { firmware: "1" }),
      row("b"),
    ];
    expect(inOrder(now, order, before)).toEqual(inOrder(now, order, []));
  });
});

test("a row tells labels and the version as devices report it", () => {
  const { shadow } = deviceOf("a");
  const reported = { ota: { fw_version: "1.2.3" }, version: "0" };
  const device = deviceOf("a", {
    shadow: { ...shadow, tags: { labels: ["x", 1, "y"] }, state: { desired: {}, reported } },
  });
  expect(rowOf(device, ["/ota/fw_version", "/ota", "/none/a"]).values).toEqual({
    "/ota/fw_version": "1.2.3",
    "/ota": '{"fw_version":"1.2.3"}',
    "/none/a": "",
  });
  expect(rowOf(device)).toMatchObject({ labels: ["x", "y"], firmware: "1.2.3", shadowVersion: 1 });
});
