import { beforeEach, describe, expect, test } from "@jest/globals";
import { screen } from "@testing-library/react";
import { DataTab } from "../src/features/data/data-tab.tsx";
import { problem, showPage } from "./show.tsx";

const noRecords = { "GET /api/v2/data": () => [200, []] as const };

beforeEach(() => window.history.replaceState(null, "", "/data"));

describe("the tab of records", () => {
  test("shows no count and no state beside an error", async () => {
    await using _page = await showPage(<DataTab />, {
      "GET /api/v2/data": () => [403, problem("forbidden", 403)],
    });
    await screen.findByRole("alert");
    expect(screen.queryByText(/\d records?|live/)).toBeNull();
  });

  test("says where records come from while there are none", async () => {
    await using _page = await showPage(<DataTab />, noRecords);
    await screen.findByText(/No device has published yet/);
    screen.getByText("0 records");
    expect(screen.getByRole("link", { name: "devices" }).getAttribute("href")).toBe("/devices");
  });

  test("offers to clear filters that match nothing", async () => {
    window.history.replaceState(null, "", "/data?filter=celsius&device=pump");
    await using page = await showPage(<DataTab />, noRecords);
    await screen.findByText("No record matches.");
    await page.user.click(screen.getByRole("button", { name: "Show all records" }));
    await screen.findByText(/No device has published yet/);
    expect(window.location.search).toBe("");
  });
});
