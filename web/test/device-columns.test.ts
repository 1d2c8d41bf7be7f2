import { expect, test } from "@jest/globals";
import { columnsIn, columnsWithin, usualColumns } from "../src/features/devices/list/device-columns.ts";

const names = (columns: string, width: number) =>
  columnsWithin(columnsIn(columns), width).map(({ name }) => name);

test("a narrow list of devices drops what is least asked for, and keeps names and chosen values", () => {
  expect(names(usualColumns, 1_064)).toEqual(usualColumns.split(","));
  // Beside the panel, in a window of 1280 px.
  expect(names(usualColumns, 672)).toEqual(["name", "last_seen", "version"]);
  expect(names(usualColumns, 493)).toEqual(["name", "last_seen"]);
  expect(names("name,/app/mode,created", 400)).toEqual(["name", "/app/mode"]);
});
