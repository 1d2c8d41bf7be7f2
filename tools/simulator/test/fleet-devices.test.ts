import { expect, test } from "@jest/globals";
import { fleetDevice } from "../src/fleet/fleet-devices.ts";
import { deviceKinds, modelOf, simulatedKinds } from "../src/models/device-models.ts";

const indices = Array.from({ length: 200 }, (_, nth) => nth + 1);
const fleet = indices.map((index) => fleetDevice("fleet", index));

test("two hundred devices have names of their kind and site that differ, and keep them in the next run", () => {
  expect(new Set(fleet.map(({ name }) => name)).size).toBe(200);
  expect(fleet[0]).toMatchObject({
    kind: "pump",
    name: "Cellar pump 1, Lyon",
    tags: { labels: ["pump", "lyon"], units: { "pump#/pressure": "bar" }, fleet: "fleet" },
  });
  expect(fleetDevice("fleet", 200)).toEqual(fleet[199]);
});

test.each(deviceKinds)(
  "most of the %s devices run the newest firmware, some an older one, at each site",
  (kind) => {
    const ofKind = fleet.filter((device) => device.kind === kind);
    const [newest, newer, old] = simulatedKinds[kind].firmware.map(
      (version) => ofKind.filter(({ firmware }) => firmware === version).length,
    );
    expect(newest).toBeGreaterThan(ofKind.length / 2);
    expect(newer).toBeGreaterThan(old ?? 0);
    expect(old).toBeGreaterThan(0);
    expect(new Set(ofKind.map(({ tags }) => tags.labels[1])).size).toBe(7);
  },
);

test.each(deviceKinds)("a %s publishes JSON whose members have the units that its tags name", (kind) => {
  const published = modelOf(kind).telemetry.flatMap(({ topic, read }) =>
    Object.keys(read() as object).map((member) => `${topic}#/${member}`),
  );
  expect(published).toEqual(expect.arrayContaining(Object.keys(simulatedKinds[kind].units)));
});
