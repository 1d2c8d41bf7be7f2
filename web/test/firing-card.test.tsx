/** @jest-environment jest-fixed-jsdom */

import { Alert } from "@devmesh/contracts/model/alert";
import { describe, expect, test } from "@jest/globals";
import { screen, within } from "@testing-library/react";
import { DeviceAlerts, FiringCard } from "../src/features/alerts/firing-card.tsx";
import { problem, showPage } from "./show.tsx";

const example = Alert.parse(Alert.meta()?.example);
const alertOf = (id: string, changes: Partial<Alert>): Alert => ({ ...example, id, ...changes });

describe("what fires", () => {
  test("is not shown as nothing where it cannot be read", async () => {
    const refused = () => [403, problem("forbidden", 403)] as const;
    await using page = await showPage(<FiringCard />, { "GET /api/v2/alerts": refused });
    await screen.findByText("What fires could not be read");
    page.show(<DeviceAlerts id="pump-1" />);
    await screen.findByText("What fires could not be read");
  });

  test("is one row for each rule, the worst first, and acknowledged ones last", async () => {
    const alerts = [
      alertOf("1", { rule_id: "away", rule_name: "Away", severity: "info", value: null }),
      alertOf("2", { rule_id: "seen", rule_name: "Seen", acknowledged_at: example.since }),
      alertOf("3", { rule_id: "warm", rule_name: "Warm", device_id: "pump-1" }),
      alertOf("4", { rule_id: "warm", rule_name: "Warm", device_id: "pump-2" }),
    ];
    await using _page = await showPage(<FiringCard />, { "GET /api/v2/alerts": () => [200, alerts] });
    await screen.findByText("4 alerts fire");
    const rows = within(screen.getByRole("list", { name: "Firing alerts" })).getAllByRole("listitem");
    expect(rows.map((row) => within(row).getByRole("link").textContent)).toEqual(["Warm", "Away", "Seen"]);
    const [warm, away] = rows.map((row) => within(row));
    warm?.getByText("2 devices");
    expect(warm?.getByRole("link").getAttribute("href")).toBe("/alerts?rule=warm");
    away?.getByText("pump-1");
    expect(away?.getByRole("link").getAttribute("href")).toBe("/alerts/1");
  });
});
