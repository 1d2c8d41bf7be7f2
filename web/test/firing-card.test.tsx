import { Alert, type AlertSummary } from "@devmesh/contracts/model/alert";
import { AlertRule } from "@devmesh/contracts/model/rule";
import { describe, expect, test } from "@jest/globals";
import { screen, waitFor, within } from "@testing-library/react";
import { DeviceAlerts, FiringCard } from "../src/features/alerts/firing-card.tsx";
import { problem, showPage } from "./show.tsx";

const example = Alert.parse(Alert.meta()?.example);
const alertOf = (id: string, changes: Partial<Alert>): Alert => ({ ...example, id, ...changes });

const none = { firing: 0, unacknowledged: 0 };
type FiringRule = AlertSummary["rules"][number];
const ruleOf = (rule_id: string, changes: Partial<FiringRule>): FiringRule => ({
  rule_id,
  rule_name: rule_id,
  severity: "critical",
  firing: 1,
  unacknowledged: 1,
  ...changes,
});

/** A summary and the newest alert of each of its rules, as the server answers them. */
function answersOf(rules: readonly FiringRule[], alerts: readonly Alert[]) {
  const summary: AlertSummary = {
    firing: rules.reduce((sum, { firing }) => sum + firing, 0),
    unacknowledged: rules.reduce((sum, { unacknowledged }) => sum + unacknowledged, 0),
    severities: { critical: none, warning: none, info: none },
    rules: [...rules],
  };
  return {
    "GET /api/v2/alerts/summary": () => [200, summary] as const,
    "GET /api/v2/rules": () => [200, []] as const,
    ...Object.fromEntries(
      alerts.map((alert) => [
        `GET /api/v2/alerts?state=firing&rule_id=${alert.rule_id}&limit=1`,
        () => [200, [alert]] as const,
      ]),
    ),
  };
}

describe("what fires", () => {
  test("is not shown as nothing where it cannot be read", async () => {
    const refused = () => [403, problem("forbidden", 403)] as const;
    await using page = await showPage(<FiringCard />, {
      "GET /api/v2/alerts": refused,
      "GET /api/v2/alerts/summary": refused,
    });
    await screen.findByText("What fires could not be read");
    page.show(<DeviceAlerts id="pump-1" />);
    await screen.findByText("What fires could not be read");
  });

  test("is one row for each rule, the worst first, and acknowledged ones last", async () => {
    const rules = [
      ruleOf("warm", { firing: 1_200, unacknowledged: 1_000 }),
      ruleOf("seen", { unacknowledged: 0 }),
      ruleOf("away", { severity: "info" }),
    ];
    const alerts = [
      alertOf("1", { rule_id: "away", rule_name: "away", severity: "info", value: null }),
      alertOf("2", { rule_id: "seen", rule_name: "seen", acknowledged_at: example.since }),
      alertOf("3", { rule_id: "warm", rule_name: "warm" }),
    ];
    await using _page = await showPage(<FiringCard />, answersOf(rules, alerts));
    await screen.findByText("1,202 alerts fire");
    const rows = within(screen.getByRole("list", { name: "Firing alerts" })).getAllByRole("listitem");
    expect(rows.map((row) => within(row).getByRole("link").textContent)).toEqual(["warm", "away", "seen"]);
    const [warm] = rows.map((row) => within(row));
    warm?.getByText("1,200 devices");
    expect(warm?.getByRole("link").getAttribute("href")).toBe("/alerts?rule=warm");
    await screen.findByText("pump-1");
    expect(screen.getByRole("link", { name: "away" }).getAttribute("href")).toBe("/alerts/1");
  });

  test("shows the course of the number that its rule is about, and none of a rule without one", async () => {
    const rule = AlertRule.parse(AlertRule.meta()?.example);
    const [hot, away] = [alertOf("1", { rule_id: "hot" }), alertOf("2", { rule_id: "away", value: null })];
    const points = [3, 2, 1].map((minute) => [
      new Date(Date.now() - minute * 60_000).toISOString(),
      30 + minute,
    ]);
    await using page = await showPage(<DeviceAlerts id="pump-1" />, {
      "GET /api/v2/alerts": () => [200, [hot, away]],
      "GET /api/v2/rules": () => [
        200,
        [
          {
            ...rule,
            id: "hot",
            when: { kind: "value", topic: "pump", pointer: "/motor", is: ">", than: 30 },
          },
          { ...rule, id: "away", when: { kind: "offline", longer_than: "PT1M" } },
        ],
      ],
      "GET /api/v2/series": () => [
        200,
        {
          every: "PT1M",
          from: "2026-01-31T12:00:00.000Z",
          until: "2026-01-31T13:00:00.000Z",
          fn: ["avg"],
          partial: false,
          series: [{ device_id: "pump-1", topic: "pump", pointer: "/motor", points }],
        },
      ],
    });
    const rows = await screen.findAllByRole("listitem");
    await waitFor(() =>
      expect(rows.map((row) => row.querySelector("polyline") !== null)).toEqual([true, false]),
    );
    expect(page.requests.filter((request) => request.startsWith("GET /api/v2/series"))).toHaveLength(1);
  });
});
