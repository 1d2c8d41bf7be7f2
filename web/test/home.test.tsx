/** @jest-environment jest-fixed-jsdom */

import type { UnknownDevice } from "@devmesh/contracts/model/diagnostics";
import { type FleetSummary, silentHours } from "@devmesh/contracts/model/fleet";
import type { MeshChange } from "@devmesh/contracts/model/mesh-change";
import type { MeshHistory, MeshMinute } from "@devmesh/contracts/model/mesh-history";
import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import { api } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { describe, expect, test } from "@jest/globals";
import { screen, within } from "@testing-library/react";
import { authorOf, deedOf, furtherChanges } from "../src/features/home/change-words.ts";
import { courseHours, courseLines } from "../src/features/home/course.tsx";
import { firmwareShares } from "../src/features/home/fleet-facts.ts";
import { HomeTab } from "../src/features/home/home-tab.tsx";
import { deviceOf } from "./devices.ts";
import { showPage, type TestRoutes } from "./show.tsx";

const began = Date.parse("2026-01-31T12:00:00.000Z");

function minute(nth: number, change: Partial<MeshMinute> = {}): MeshMinute {
  return {
    at: new Date(began + nth * 60_000).toISOString(),
    devices_online: nth,
    records: null,
    logins: null,
    logins_refused: null,
    device_calls: null,
    waiting: 0,
    ...change,
  };
}

test("shares of the firmware are those of the server, then other versions and devices without one", () => {
  const shares = (more: Partial<FleetSummary>) =>
    firmwareShares({
      devices: 9,
      firmware: [{ version: "2.0", devices: 2 }],
      other_firmware: 0,
      no_firmware: 0,
      silent: [],
      ...more,
    });
  expect(shares({})).toEqual([{ version: "2.0", devices: 2 }]);
  expect(shares({ other_firmware: 3, no_firmware: 4 }).slice(1)).toEqual([
    { version: "others", devices: 3 },
    { version: null, devices: 4 },
  ]);
});

test("a course shows the hours that are known, a day at most", () => {
  const hour = 60 * 60_000;
  const hoursOf = (first: number) => courseHours([[{ at: first, value: 1 }]], 100 * hour);
  expect([hoursOf(100 * hour), hoursOf(98.5 * hour), hoursOf(0)]).toEqual([1, 2, 24]);
});

test("a course is interrupted where minutes are missing or not known", () => {
  const history = [minute(0), minute(1), minute(2, { devices_online: null }), minute(3), minute(9)];
  const lines = courseLines(history, "devices_online").map((line) => line.map(({ value }) => value));
  expect(lines).toEqual([[0, 1], [3], [9]]);
});

describe("the words of a change", () => {
  test("name each operation that is listed, and others by their ids", () => {
    for (const [operation, { change }] of Object.entries<RouteDeclaration>(api))
      if (change) expect(deedOf({ operation })).toMatch(/^[a-z]+ [a-z ]+$/);
    expect(deedOf({ operation: "ofALaterRelease" })).toBe("ofALaterRelease");
  });

  test("name a key as the list of keys does, with a way to it", () => {
    expect(authorOf({ kind: "master", id: "k1", name: "Ann" })).toEqual({
      text: "Ann",
      href: "/keys?filter=k1",
    });
    expect(authorOf({ kind: "device_key", id: "k2", name: null }).text).toBe("key k2");
    const id = "01a20626-e816-7000-98e0-5d3abddce2a2";
    expect(authorOf({ kind: "master", id, name: null })).toEqual({
      text: "key …5d3abddce2a2",
      href: `/keys?filter=${id}`,
    });
    expect(authorOf({ kind: "public_key", id: "pump", name: null })).toEqual({
      text: "public key of pump",
      href: "/devices/pump/credentials",
    });
    expect(authorOf({ kind: "customer", id: "c1", name: null }).href).toBe("/customers?filter=c1");
  });

  test("count further ones", () => {
    expect([furtherChanges({ count: 1 }), furtherChanges({ count: 10_000 })]).toEqual([
      "",
      ", the last of 10,000 such changes",
    ]);
  });
});

describe("the home page", () => {
  const change = (nth: number, operation: string, id: string): MeshChange => ({
    at: minute(nth).at,
    by: { kind: "master", id: "k1", name: "Ann" },
    operation,
    target: { kind: "device", id },
    count: 1,
  });
  const unknown: UnknownDevice = {
    id: "pmup-1",
    reason: "unknown_device",
    address: "10.0.0.7",
    client_id: "pmup-1",
    count: 4,
    first_at: minute(0).at,
    last_at: minute(1).at,
  };
  const meshState: MeshState = {
    timestamp: minute(1).at,
    services: [
      {
        name: "devices",
        replicas: [
          {
            id: "one",
            release: null,
            version: "1.0.0",
            started: minute(0).at,
            endpoints: [],
            figures: { devices_online: 1 },
          },
        ],
      },
    ],
    queues: { data: 0, rpc_bridge: 0, mail: 0, dead_mail: 0 },
    fleet: {
      devices: 50_000,
      firmware: [{ version: "1.4.2", devices: 49_000 }],
      other_firmware: 0,
      no_firmware: 1_000,
      silent: silentHours.map((hours) => ({ hours, devices: 10_000 - hours })),
    },
  };
  const routes: TestRoutes = {
    "GET /api/v2/mesh": () => [
      200,
      `data: ${JSON.stringify(meshState)}\n\n`,
      { "Content-Type": "text/event-stream" },
    ],
    "GET /api/v2/devices/pump": () => [200, deviceOf("pump")],
    "GET /api/v2/mesh/history": () => [200, [minute(0), minute(1)] satisfies MeshHistory],
    "GET /api/v2/unknown_devices": () => [200, [unknown]],
    "GET /api/v2/mesh/changes": () => [200, []],
  };

  test("shows how many devices are online, each figure with a way to its list", async () => {
    await using page = await showPage(<HomeTab />, routes);
    const link = await screen.findByRole("link", { name: "Devices online" });
    expect(link.getAttribute("href")).toBe("/devices?online=true");
    await screen.findByText("of 50,000");
    await screen.findByText("1.4.2");
    await page.user.selectOptions(screen.getByLabelText("Not seen for"), "3 days");
    await screen.findByText("9,928");
    expect(page.requests.filter((request) => request.startsWith("GET /api/v2/devices"))).toEqual([]);
    expect(screen.getByRole("link", { name: "Silent devices" }).getAttribute("href")).toBe(
      "/devices?online=false&sort=lastSeen",
    );
  });

  test("shows who changed what last, with links to the key and to devices that are still there", async () => {
    const changes: MeshChange[] = [
      { ...change(9, "deleteDevice", "lamp"), count: 12 },
      change(8, "patchDevice", "pump"),
      change(7, "rotateToken", "gone"),
    ];
    await using _page = await showPage(<HomeTab />, {
      ...routes,
      "GET /api/v2/mesh/changes": () => [200, changes],
    });
    const table = await screen.findByRole("table", { name: "Last changes" });
    const pump = await within(table).findByRole("link", { name: "pump" });
    expect(pump.getAttribute("href")).toBe("/devices/pump");
    const rows = within(table).getAllByRole("row").slice(1);
    expect(rows.map((row) => row.querySelector("td:last-child")?.textContent)).toEqual([
      "deleted device lamp, the last of 12 such changes",
      "changed device pump",
      "replaced the token of device gone",
    ]);
    expect(
      within(table)
        .getAllByRole("link")
        .map((link) => link.textContent),
    ).toEqual(["Ann", "Ann", "pump", "Ann"]);
  });

  test("shows eight changes, and all of them when asked", async () => {
    const changes = Array.from({ length: 20 }, (_, nth) => change(-nth, "patchDevice", "pump"));
    await using page = await showPage(<HomeTab />, {
      ...routes,
      "GET /api/v2/mesh/changes": () => [200, changes],
    });
    const table = await screen.findByRole("table", { name: "Last changes" });
    expect(within(table).getAllByRole("row")).toHaveLength(9);
    await page.user.click(screen.getByRole("button", { name: "Show all 20" }));
    expect(within(table).getAllByRole("row")).toHaveLength(21);
  });

  test("says what the list of changes is for while it is empty", async () => {
    await using _page = await showPage(<HomeTab />, routes);
    await screen.findByText(/^None yet\. Who creates, changes or deletes/);
  });

  test("shows which unknown ids try to log in, and from where", async () => {
    await using _page = await showPage(<HomeTab />, routes);
    const table = await screen.findByRole("table", { name: "Logins of unknown devices" });
    within(table).getByText("pmup-1");
    within(table).getByText(/from 10\.0\.0\.7, 4 times/);
  });
});
