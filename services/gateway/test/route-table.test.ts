import { describe, expect, test } from "@jest/globals";
import { RouteTable } from "../src/http/router.ts";

function tableOf(...patterns: string[]): RouteTable<string> {
  const table = new RouteTable<string>();
  for (const pattern of patterns) table.add(pattern, pattern);
  return table;
}

describe("a table of routes", () => {
  const table = tableOf(
    "/api/devices",
    "/api/devices/:id",
    "/api/devices/:id/rpc/:func",
    "/api/devices/own/data",
  );

  test.each([
    ["/api/devices", "/api/devices", {}],
    ["/api/devices?limit=1", "/api/devices", {}],
    ["/api/devices/", "/api/devices", {}],
    ["/api/devices/a%20b", "/api/devices/:id", { id: "a b" }],
    ["/api/devices/a/rpc/Sys.Info?x=/y", "/api/devices/:id/rpc/:func", { id: "a", func: "Sys.Info" }],
    ["/api/devices/own/data", "/api/devices/own/data", {}],
    ["/api/devices/own", "/api/devices/:id", { id: "own" }],
    ["/api/devices/own/rpc/f", "/api/devices/:id/rpc/:func", { id: "own", func: "f" }],
    ["http://a.example:80/api/devices/a", "/api/devices/:id", { id: "a" }],
  ])("finds %s", (target, value, params) => {
    expect(table.find(target)).toEqual({ value, params });
  });

  test.each([
    "/",
    "",
    "/api",
    "/API/devices",
    "/api//devices",
    "/api/devices//",
    "/api/devices/a/rpc",
    "*",
    "http://",
  ])("does not find %j", (target) => {
    expect(table.find(target)).toBeUndefined();
  });

  test("refuses a parameter that is not UTF-8", () => {
    expect(() => table.find("/api/devices/%ff")).toThrow(
      expect.objectContaining({ reason: "path_malformed" }),
    );
    expect(table.find("/api/%ff")).toBeUndefined();
  });

  test("refuses two names for one parameter", () => {
    expect(() => tableOf("/:a/x", "/:b/y")).toThrow(":b is already :a");
  });
});
