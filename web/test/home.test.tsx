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
import { courseLines, courseSpan } from "../src/features/home/course.tsx";
import { firmwareShares } from "../src/features/home/fleet-facts.ts";
import { HomeTab } from "../src/features/home/home-tab.tsx";
import { deviceOf, diagnosisOf } from "./devices.ts";
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
      firmware: [{ version: "2.0", devices: 2 }],
      other_firmware: 0,
      no_firmware: 0,
      ...more,
    });
  expect(shares({})).toEqual([{ version: "2.0", devices: 2 }]);
  expect(shares({ other_firmware: 3, no_firmware: 4 }).slice(1)).toEqual([
    { version: "others", devices: 3 },
    { version: null, devices: 4 },
  ]);
});

test("a course shows the time that is known: five minutes at least, whole hours from one on, a day at most", () => {
  const minuteMs = 60_000;
  const minutesOf = (first: number) =>
    courseSpan([[{ at: first * minuteMs, value: 1 }]], 6_000 * minuteMs) / minuteMs;
  expect([6_000, 5_980, 5_910, 0].map(minutesOf)).toEqual([5, 20, 120, 24 * 60]);
});

test("a course is interrupted where minutes are missing or not known", () => {
  const history = [minute(0), minute(1), minute(2, { devices_online: null }), minute(3), minute(9)];
  const lines = courseLines(history, "devices_online").map((line) => line.map(({ value }) => value));
  expect(lines).toEqual([[0, 1], [3], [9]]);
});

describe("the words of a change", () => {
  test("name each operation that is listed, and others by their ids", () => {
    for (const [operation, { change }] of Object.entries<RouteDeclaration>(api))
      if (change) expect(deedOf({ operation })).toMatch(/^[A-Z][a-z]+ [a-z ]+$/);
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
      " and 9,999 more",
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
    queues: { data: 0, rpc_bridge: 0, jobs: 0, mail: 0, dead_mail: 0 },
    fleet: {
      counted_at: new Date(began).toISOString(),
      devices: 50_000,
      online: 40_000,
      firmware: [{ version: "1.4.2", devices: 49_000 }],
      other_firmware: 0,
      no_firmware: 1_000,
      labels: [],
      other_labels: 0,
      silent: silentHours.map((hours) => ({ hours, devices: 10_000 - hours })),
    },
  };
  const routes: TestRoutes = {
    "GET /api/v2/mesh": () => [
      200,
      `data: ${JSON.stringify(meshState)}\n\n`,
      { "Content-Type": "text/event-stream" },
    ],
    "GET /api/v2/devices": () => [
      200,
      [deviceOf("lamp"), { ...deviceOf("older"), last_seen: minute(-1).at, created_at: minute(-9).at }],
    ],
    "GET /api/v2/device_facets": () => [
      200,
      {
        total: 3,
        facets: {
          problem: [
            { value: "topic", count: 2 },
            { value: "wrong_password", count: 1 },
          ],
        },
        others: {},
      },
    ],
    "GET /api/v2/diagnostics?name=topic&since=PT24H&limit=20": () => [
      200,
      [{ ...diagnosisOf(minute(2).at, { name: "publication_refused", reason: "topic" }), id: "fan" }],
    ],
    "GET /api/v2/diagnostics?name=wrong_password&since=PT24H&limit=20": () => [
      200,
      [{ ...diagnosisOf(minute(1).at), id: "pump" }],
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
    const version = await screen.findByRole("link", { name: "1.4.2" });
    expect(version.getAttribute("href")).toBe("/devices?where=version%3A1.4.2");
    await page.user.selectOptions(screen.getByLabelText("Not seen for"), "3 days");
    await screen.findByText("9,928");
    const silent = screen.getByRole("link", { name: "Silent devices" });
    expect(silent.getAttribute("href")).toBe("/devices?where=silent%3A72h");
    const list = screen.getByRole("list", { name: "Silent devices" });
    const devices = await within(list).findAllByRole("link");
    expect(devices.map((device) => device.textContent)).toEqual(["older", "lamp"]);
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
    const list = await screen.findByRole("list", { name: "Last changes" });
    const pump = await within(list).findByRole("link", { name: "pump" });
    expect(pump.getAttribute("href")).toBe("/devices/pump");
    const rows = within(list).getAllByRole("listitem");
    expect(rows.map((row) => row.querySelector("span")?.textContent)).toEqual([
      "Deleted device lamp and 11 more",
      "Changed device pump",
      "Replaced the token of device gone",
    ]);
    expect(
      within(list)
        .getAllByRole("link")
        .map((link) => link.textContent),
    ).toEqual(["Ann", "pump", "Ann", "Ann"]);
  });

  test("shows six changes, and all of them when asked", async () => {
    const changes = Array.from({ length: 20 }, (_, nth) => change(-nth, "patchDevice", "pump"));
    await using page = await showPage(<HomeTab />, {
      ...routes,
      "GET /api/v2/mesh/changes": () => [200, changes],
    });
    const list = await screen.findByRole("list", { name: "Last changes" });
    expect(within(list).getAllByRole("listitem")).toHaveLength(6);
    await page.user.click(screen.getByRole("button", { name: "Show all 20" }));
    expect(within(list).getAllByRole("listitem")).toHaveLength(20);
  });

  test("says what the list of changes is for while it is empty", async () => {
    await using _page = await showPage(<HomeTab />, routes);
    await screen.findByText(/^None yet\. Who creates, changes or deletes/);
  });

  test("says how many devices need attention and why, each problem with a way to its devices", async () => {
    await using _page = await showPage(<HomeTab />, routes);
    const all = await screen.findByRole("link", { name: "3 devices need attention" });
    expect(all.getAttribute("href")).toBe("/devices?where=problem%3Aany");
    const rows = within(screen.getByRole("list", { name: "Problems of devices" })).getAllByRole("listitem");
    expect(rows.map((row) => row.textContent)).toEqual([
      expect.stringMatching(/^Wrong password pump1 device/),
      expect.stringMatching(/^Wrong topic fan…2 devices/),
    ]);
    const link = screen.getByRole("link", { name: "Wrong password" });
    expect(link.getAttribute("href")).toBe("/devices?where=problem%3Awrong_password");
  });

  test("leads a new installation through three steps, and shows refused logins while it waits", async () => {
    let devices: unknown[] = [];
    const created = { ...deviceOf("pump"), created_at: new Date().toISOString() };
    await using page = await showPage(<HomeTab />, {
      ...routes,
      "GET /api/v2/devices": () => [200, devices],
      "GET /api/v2/devices/pump/diagnostics": () => [200, [diagnosisOf(minute(1).at)]],
      "POST /api/v2/devices/pump/rpc/sum": () => [200, 5],
    });
    await screen.findByRole("button", { name: "Add the first device" });
    devices = [created];
    await screen.findByText("Waiting for pump to connect.");
    await screen.findByText(/^pump was refused: wrong password/);
    screen.getByText(/^pmup-1 was refused: unknown device/);
    devices = [{ ...created, online: true }];
    await page.user.click(await screen.findByRole("button", { name: "Call sum" }));
    await page.user.click(await screen.findByRole("button", { name: "Done" }));
    expect(screen.queryByText("Connect your first device")).toBeNull();
    localStorage.clear();
  });

  test("says that nothing needs attention", async () => {
    await using _page = await showPage(<HomeTab />, {
      ...routes,
      "GET /api/v2/device_facets": () => [200, { total: 0, facets: {}, others: {} }],
      "GET /api/v2/unknown_devices": () => [200, []],
    });
    await screen.findByText(/^Nothing: no login was refused/);
  });

  test("shows which unknown ids try to log in, and from where", async () => {
    await using _page = await showPage(<HomeTab />, routes);
    const list = await screen.findByRole("list", { name: "Logins of unknown devices" });
    within(list).getByText("pmup-1");
    within(list).getByText(/from 10\.0\.0\.7, 4 times/);
  });
});
