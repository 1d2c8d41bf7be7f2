import { beforeEach, expect, test } from "@jest/globals";
import { screen, waitFor } from "@testing-library/react";
import { Palette } from "../src/app/palette.tsx";
import { deviceOf } from "./devices.ts";
import { showPage } from "./show.tsx";

beforeEach(() => window.history.replaceState(null, "", "/home"));

test("the search finds devices by what the server finds, with actions on the first, and views", async () => {
  const found = [deviceOf("pump-1", { name: "Boiler", online: true }), deviceOf("pump-2")];
  await using page = await showPage(<Palette onClose={() => {}} />, {
    "GET /api/v2/devices": () => [200, found],
  });
  const field = screen.getByRole("combobox", { name: "Search devices, views and actions" });
  await page.user.type(field, "pump");
  await screen.findByRole("option", { name: /Boiler/ });
  expect(page.requests.at(-1)).toBe("GET /api/v2/devices?limit=6&filter=pump");
  await page.user.keyboard("{ArrowDown}{ArrowDown}{ArrowDown}{Enter}");
  await waitFor(() => expect(window.location.pathname).toBe("/devices/pump-1/shadow"));
});

test("the search goes to a view by its name", async () => {
  await using page = await showPage(<Palette onClose={() => {}} />, {
    "GET /api/v2/devices": () => [200, []],
  });
  await page.user.type(screen.getByRole("combobox"), "serv{Enter}");
  await waitFor(() => expect(window.location.pathname).toBe("/services"));
});

test("the search opens a saved view by its name", async () => {
  await using page = await showPage(<Palette onClose={() => {}} />, {
    "GET /api/v2/devices": () => [200, []],
    "GET /api/v2/views": () => [200, [{ id: "v1", name: "Silent pumps", query: "where=silent%3A24h" }]],
  });
  await screen.findByRole("option", { name: /^Silent pumps/ });
  await page.user.type(screen.getByRole("combobox"), "silent{Enter}");
  await waitFor(() =>
    expect(window.location.pathname + window.location.search).toBe("/devices?where=silent%3A24h"),
  );
});
