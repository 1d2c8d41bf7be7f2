/** @jest-environment jest-fixed-jsdom */
import { beforeEach, expect, jest, test } from "@jest/globals";
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { DevicesTab } from "../src/features/devices/list/devices-tab.tsx";
import { deviceOf } from "./devices.ts";
import { showPage } from "./show.tsx";

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
  expect(page.requests[0]).toBe(`GET ${devices}?limit=100&order=desc`);
  expect(links().slice(0, 2)).toEqual(["new", "old"]);
  screen.getByTitle(/^Version of the firmware, as the device reports it in ota\.fw_version/);
  const created = screen.getByRole("columnheader", { name: "Created" });
  expect(created.getAttribute("aria-sort")).toBe("descending");
  await page.user.click(within(created).getByRole("button"));
  await waitFor(() => expect(page.requests).toContain(`GET ${devices}?limit=100`));
  expect(window.location.search).toBe("?direction=ascending");
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
