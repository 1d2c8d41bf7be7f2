import { beforeEach, expect, jest, test } from "@jest/globals";
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { DevicesTab } from "../src/features/devices/list/devices-tab.tsx";
import { deviceOf } from "./devices.ts";
import { problem, showPage } from "./show.tsx";

// A window in which the list shows its rows, which jsdom does not lay out.
Object.defineProperty(Element.prototype, "clientHeight", { get: () => 600 });

const devices = "/api/v2/devices";
const listOf = (...ids: string[]) => ids.map((id) => deviceOf(id));
const links = () => screen.getAllByRole("link").map(({ textContent }) => textContent);

beforeEach(() => window.history.replaceState(null, "", "/devices"));

test("the list of devices begins with the newest and counts all of them before they are read", async () => {
  await using page = await showPage(<DevicesTab />, {
    [`GET ${devices}`]: () => [
      200,
      listOf("new", "old"),
      { "Total-Count": "1500", Link: `<${devices}?limit=100&order=desc&after=9>; rel="next"` },
    ],
  });
  await screen.findByText(/^\d+ of 1,500 devices read$/);
  expect(page.requests).toContain(`GET ${devices}?limit=100&order=desc`);
  expect(links().slice(0, 2)).toEqual(["new", "old"]);
  screen.getByTitle(/^Version of the firmware, as the device reports it in ota\.fw_version/);
  const created = screen.getByRole("columnheader", { name: "Created" });
  expect(created.getAttribute("aria-sort")).toBe("descending");
  await page.user.click(within(created).getByRole("button"));
  await waitFor(() => expect(page.requests).toContain(`GET ${devices}?limit=100`));
  expect(window.location.search).toBe("?direction=ascending");
});

test("the list is sorted by the server where that can, without reading all of it", async () => {
  await using page = await showPage(<DevicesTab />, {
    [`GET ${devices}`]: () => [
      200,
      listOf("b", "a"),
      { "Total-Count": "1500", Link: `<${devices}?limit=100&after=9>; rel="next"` },
    ],
  });
  await screen.findByText(/^\d+ of 1,500 devices read$/);
  for (const [name, order] of [
    ["Version", "version"],
    ["Version", "-version"],
    ["Last seen", "last_seen"],
    ["Last seen", "-last_seen"],
  ]) {
    const heading = screen.getByRole("columnheader", { name: name ?? "" });
    await page.user.click(within(heading).getByRole("button"));
    await waitFor(() => expect(page.requests).toContain(`GET ${devices}?limit=100&order=${order}`));
    await waitFor(() => expect(links().slice(0, 2)).toEqual(["b", "a"]));
  }
});

test("an empty list says what to do, and an empty choice how to widen it", async () => {
  window.history.replaceState(null, "", "/devices?filter=pump&online=true");
  await using page = await showPage(<DevicesTab />, { [`GET ${devices}`]: () => [200, []] });
  await page.user.click(await screen.findByRole("button", { name: "Show all devices" }));
  await screen.findByText(/There are no devices yet/);
  expect(window.location.search).toBe("");
  await page.user.click(screen.getByRole("button", { name: "Add the first device" }));
  await screen.findByRole("dialog", { name: "Add a device" });
});

test("a click with Shift selects all devices from the one before", async () => {
  await using page = await showPage(<DevicesTab />, {
    [`GET ${devices}`]: () => [200, listOf("a", "b", "c", "d")],
  });
  await page.user.click(await screen.findByLabelText("Select b"));
  fireEvent.click(screen.getByLabelText("Select d"), { shiftKey: true });
  await screen.findByText("3 selected");
  expect(screen.getByLabelText("Select a")).toHaveProperty("checked", false);
});

test("a click in a row opens the device beside the list, with Ctrl its page, and one on its box neither", async () => {
  await using page = await showPage(<DevicesTab />, {
    [`GET ${devices}`]: () => [200, listOf("a", "b")],
    [`GET ${devices}/b`]: () => [200, deviceOf("b", { name: "Boiler" })],
  });
  await page.user.click(await screen.findByLabelText("Select b"));
  expect(window.location.search).toBe("");
  const link = screen.getByRole("link", { name: "b" });
  const lastCell = link.closest("tr")?.lastElementChild as Element;
  const clicked = jest.fn((event: MouseEvent) => event.ctrlKey);
  link.addEventListener("click", clicked);
  fireEvent.click(lastCell, { ctrlKey: true });
  expect(clicked).toHaveReturnedWith(true);
  expect(window.location.search).toBe("");
  fireEvent.click(lastCell);
  await waitFor(() => expect(window.location.search).toBe("?peek=b"));
  await screen.findByRole("heading", { name: "Boiler" });
  await page.user.click(screen.getByRole("button", { name: "Close the panel" }));
  await waitFor(() => expect(window.location.search).toBe(""));
});

test("the keys walk through the rows, select, and open beside the list; each row is one stop", async () => {
  await using page = await showPage(<DevicesTab />, {
    [`GET ${devices}`]: () => [200, listOf("a", "b", "c")],
  });
  await screen.findByRole("link", { name: "a" });
  await page.user.keyboard("j");
  expect(document.activeElement?.textContent).toBe("a");
  await page.user.keyboard("jjk");
  expect(document.activeElement?.textContent).toBe("b");
  await page.user.keyboard("x");
  await screen.findByText("1 selected");
  await page.user.tab();
  expect(document.activeElement?.textContent).toBe("c");
  await page.user.keyboard(" ");
  await waitFor(() => expect(window.location.search).toBe("?peek=c"));
  await page.user.keyboard("{Escape}/");
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Filter devices");
});

test("what is typed narrows the list, and Enter makes chips of it, which can be taken away", async () => {
  await using page = await showPage(<DevicesTab />, {
    [`GET ${devices}`]: () => [200, listOf("a")],
    "GET /api/v2/device_facets": () => [
      200,
      { total: 1, facets: { label: [{ value: "roof", count: 1 }], version: [] }, others: {} },
    ],
  });
  const field = screen.getByRole("combobox", { name: "Filter devices" });
  await page.user.type(field, "label:ro");
  await page.user.click(await screen.findByRole("option", { name: "label:roof" }));
  await waitFor(() => expect(window.location.search).toBe("?filter=label%3Aroof"));
  await page.user.type(field, "{Enter}");
  await waitFor(() => expect(window.location.search).toBe("?where=label%3Aroof"));
  const asked = () =>
    new URL(page.requests.at(-1)?.slice(4) ?? "", "http://localhost").searchParams.get("where");
  await waitFor(() => expect(asked()).toBe('{"labels":{"all":["roof"]}}'));
  await page.user.type(field, "silent:soon{Enter}");
  await screen.findByText(/^At character 8: must be a duration/);
  await page.user.clear(field);
  await page.user.click(screen.getByRole("button", { name: "Remove the filter Label roof" }));
  await waitFor(() => expect(window.location.search).toBe(""));
});

test("any reported value can be a column", async () => {
  window.history.replaceState(null, "", "/devices?columns=name,/app/mode");
  const { shadow } = deviceOf("a");
  const reported = { app: { mode: "eco", level: 3 } };
  const device = deviceOf("a", { shadow: { ...shadow, state: { desired: {}, reported } } });
  await using page = await showPage(<DevicesTab />, {
    [`GET ${devices}`]: () => [200, [device]],
    [`GET ${devices}/a`]: () => [200, device],
  });
  await screen.findByText("eco");
  await page.user.click(screen.getByRole("button", { name: "Columns" }));
  await page.user.click(await screen.findByRole("combobox", { name: "A reported value" }));
  await page.user.click(await screen.findByRole("option", { name: "/app/level" }));
  await screen.findByRole("columnheader", { name: "app.level" });
  await screen.findByText("3");
});

test("a saved view says so, is renamed and deleted, and another list is saved or replaces one", async () => {
  window.history.replaceState(null, "", "/devices?sort=name&filter=pump&peek=a");
  let views = [{ id: "v1", name: "Pumps", query: "filter=pump&sort=name" }];
  const bodies: unknown[] = [];
  await using page = await showPage(<DevicesTab />, {
    [`GET ${devices}`]: () => [200, listOf("a")],
    "GET /api/v2/views": () => [200, views],
    "POST /api/v2/views/v1": (changes: object) => {
      bodies.push(changes);
      views = views.map((view) => ({ ...view, ...changes }));
      return [200, views[0]];
    },
    "POST /api/v2/views": (body: { name: string; query: string }) => {
      bodies.push(body);
      if (body.name === "Taken") return [409, problem("view_name_taken", 409)];
      views = [...views, { id: "v2", ...body }];
      return [201, views[1]];
    },
    "DELETE /api/v2/views/v1": () => {
      views = views.filter(({ id }) => id !== "v1");
      return [204];
    },
  });
  await page.user.click(await screen.findByRole("button", { name: "View Pumps" }));
  await page.user.click(await screen.findByRole("menuitem", { name: "Rename" }));
  const name = await screen.findByLabelText(/^Name/);
  await page.user.clear(name);
  await page.user.type(name, " Our pumps {Enter}");
  await screen.findByRole("button", { name: "View Our pumps" });
  expect(bodies.splice(0)).toEqual([{ name: "Our pumps" }]);

  const filter = screen.getByRole("combobox", { name: "Filter devices" });
  await page.user.clear(filter);
  await page.user.type(filter, "valve");
  await page.user.click(await screen.findByRole("button", { name: "Save view" }));
  await page.user.type(await screen.findByLabelText(/^Name/), "Our pumps");
  await page.user.click(await screen.findByRole("button", { name: "Replace" }));
  await screen.findByRole("button", { name: "View Our pumps" });
  expect(bodies.splice(0)).toEqual([{ query: "filter=valve&sort=name" }]);

  await page.user.click(screen.getByRole("button", { name: "View Our pumps" }));
  await page.user.click(await screen.findByRole("menuitem", { name: "Delete the view" }));
  await page.user.click(await screen.findByRole("button", { name: "Delete" }));
  await page.user.click(await screen.findByRole("button", { name: "Save view" }));
  await page.user.type(await screen.findByLabelText(/^Name/), "Taken{Enter}");
  await screen.findByText("The view was not saved");
  const again = screen.getByLabelText(/^Name/);
  await page.user.clear(again);
  await page.user.type(again, "Valves{Enter}");
  await screen.findByRole("button", { name: "View Valves" });
  expect(bodies.at(-1)).toEqual({ name: "Valves", query: "filter=valve&sort=name" });
}, 240_000);
