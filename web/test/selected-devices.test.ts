import { describe, expect, test } from "@jest/globals";
import {
  allSelected,
  idsBetween,
  noneSelected,
  selectedIn,
  withDevices,
} from "../src/features/devices/list/selected-devices.ts";
import { rowOf } from "../src/features/devices/shared/device-row.ts";
import { deviceOf } from "./devices.ts";

const rows = (...ids: string[]) => ids.map((id) => rowOf(deviceOf(id)));
const selected = (...args: Parameters<typeof selectedIn>) => [...selectedIn(...args)];

describe("a selection of devices", () => {
  test("holds what is ticked, as long as it is in the list", () => {
    const two = withDevices(withDevices(noneSelected, ["a"], true), ["b"], true);
    expect(selected(two, rows("a", "b", "c"))).toEqual(["a", "b"]);
    expect(selected(two, rows("b", "c"))).toEqual(["b"]);
    expect(selected(withDevices(two, ["a"], false), rows("a", "b"))).toEqual(["b"]);
  });

  test("of all that match takes up what is read later", () => {
    expect(selected(allSelected, rows("a"))).toEqual(["a"]);
    expect(selected(allSelected, rows("a", "b"))).toEqual(["a", "b"]);
  });

  test("of all that match leaves out what was taken out of it, whatever changes in the list", () => {
    const without = withDevices(allSelected, ["b"], false);
    expect(selected(without, rows("a", "b", "c"))).toEqual(["a", "c"]);
    expect(selected(without, rows("a", "b", "c", "d"))).toEqual(["a", "c", "d"]);
    expect(selected(withDevices(without, ["b"], true), rows("a", "b"))).toEqual(["a", "b"]);
  });

  test("is extended from one device to another, up or down, as the list is then", () => {
    expect(idsBetween(rows("a", "b", "c", "d"), "b", "d")).toEqual(["b", "c", "d"]);
    expect(idsBetween(rows("a", "b", "c", "d"), "c", "a")).toEqual(["a", "b", "c"]);
    expect(idsBetween(rows("a", "b"), "gone", "b")).toEqual(["b"]);
    expect(idsBetween(rows("a", "b"), null, "b")).toEqual(["b"]);
  });
});
