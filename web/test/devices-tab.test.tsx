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

test("a click anywhere in a row opens the device, and one on its box does not", async () => {
  await using page = await showPage(<DevicesTab />, { [`GET ${devices}`]: () => [200, listOf("a", "b")] });
  await page.user.click(await screen.findByLabelText("Select b"));
  expect(window.location.pathname).toBe("/devices");
  const link = screen.getByRole("link", { name: "b" });
  const lastCell = link.closest("tr")?.lastElementChild as Element;
  const clicked = jest.fn((event: MouseEvent) => event.ctrlKey);
  link.addEventListener("click", clicked);
  fireEvent.click(lastCell, { ctrlKey: true });
  expect(clicked).toHaveReturnedWith(true);
  expect(window.location.pathname).toBe("/devices");
  fireEvent.click(lastCell);
  await waitFor(() => expect(window.location.pathname).toBe("/devices/b"));
});
