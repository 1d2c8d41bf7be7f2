import { maxViews } from "@devmesh/contracts/model/saved-view";
import { ServiceError } from "@devmesh/service-kit/errors";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { call, type DevicesFixture, startDevicesFixture } from "./devices-fixture.ts";

describe("saved views", () => {
  let mesh: DevicesFixture;
  beforeAll(async () => {
    mesh = await startDevicesFixture();
    await mesh.start();
  });
  afterAll(async () => await mesh[Symbol.asyncDispose]());

  const save = (name: string, query = "where=label%3Aa") => mesh.devices.createView({ name, query }, call());
  const views = () => mesh.devices.listViews({}, call());
  const reasonOf = async (answer: Promise<unknown>) =>
    await answer.then(
      () => null,
      (error: unknown) => (error instanceof ServiceError ? error.reason : error),
    );

  test("are saved, changed in place, and deleted", async () => {
    const pumps = await save("Pumps");
    const valves = await save("Valves");
    expect(await views()).toEqual([pumps, valves]);
    const renamed = await mesh.devices.patchView({ id: pumps.id, name: "All pumps" }, call());
    expect(renamed).toEqual({ ...pumps, name: "All pumps" });
    const moved = await mesh.devices.patchView({ id: valves.id, query: "where=b" }, call());
    expect(await views()).toEqual([renamed, { ...valves, query: "where=b" }]);
    expect(moved.query).toBe("where=b");
    for (const { id } of await views()) await mesh.devices.deleteView({ id }, call());
    expect(await views()).toEqual([]);
    expect(await reasonOf(mesh.devices.deleteView({ id: pumps.id }, call()))).toBe("view_not_found");
    expect(await reasonOf(mesh.devices.patchView({ id: pumps.id, name: "x" }, call()))).toBe(
      "view_not_found",
    );
  });

  test("have names of which no two are equal", async () => {
    const one = await save("One");
    const two = await save("Two");
    expect(await reasonOf(save("One"))).toBe("view_name_taken");
    expect(await reasonOf(mesh.devices.patchView({ id: two.id, name: "One" }, call()))).toBe(
      "view_name_taken",
    );
    expect(await mesh.devices.patchView({ id: one.id, name: "One" }, call())).toEqual(one);
    for (const { id } of [one, two]) await mesh.devices.deleteView({ id }, call());
  });

  test("none is lost of many that are saved at one time, up to as many as there may be", async () => {
    const names = Array.from({ length: maxViews + 5 }, (_, nth) => `View ${nth}`);
    const refused = (await Promise.all(names.map((name) => reasonOf(save(name))))).filter(Boolean);
    expect(refused).toEqual(Array(5).fill("too_many_views"));
    expect(await views()).toHaveLength(maxViews);
  });

  test.each([
    ["", "where=a"],
    [" blank", "where=a"],
    ["two\nlines", "where=a"],
    ["n".repeat(61), "where=a"],
    ["no query", ""],
    ["fragment", "where=a#b"],
    ["blank", "where=a b"],
    ["long", `where=${"a".repeat(2_048)}`],
  ])("%j with the query %j is refused", async (name, query) => {
    expect(await reasonOf(save(name, query))).toBe("invalid_request");
  });
});
