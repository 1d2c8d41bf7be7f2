import type { Diagnosis } from "@devmesh/contracts/model/diagnostics";
import { describe, expect, test } from "@jest/globals";
import { screen, waitFor, within } from "@testing-library/react";
import { ConnectionCard } from "../src/features/devices/page/connection-card.tsx";
import { LogSection } from "../src/features/devices/page/log-section.tsx";
import { diagnosisDetail } from "../src/features/devices/shared/diagnosis-words.ts";
import { deviceOf, diagnosisOf } from "./devices.ts";
import { showPage } from "./show.tsx";

const diagnosis = (changes: Partial<Diagnosis>) =>
  diagnosisOf(new Date(Date.now() - 125_000).toISOString(), changes);

const answering = (entries: readonly Diagnosis[]) => ({
  "GET /api/v2/devices/pump/diagnostics": () => [200, entries] as const,
});

describe("a device that does not connect", () => {
  const entries = [
    diagnosis({ count: 3 }),
    diagnosis({ name: "disconnected", reason: "read_error" }),
    diagnosis({ name: "publication_refused", reason: "not_json", topic: "pump/event/x", address: null }),
  ];

  test("has in its overview why it was refused last, and how its connection ended", async () => {
    await using _page = await showPage(<ConnectionCard device={deviceOf("pump")} />, answering(entries));
    const refused = (await screen.findByText("Last refused")).parentElement;
    expect(refused?.textContent).toBe("Last refused2 min ago, wrong password, from 10.0.0.7, 3 times");
    const ended = screen.getByText("Disconnected").parentElement;
    expect(ended?.textContent).toMatch(/2 min ago, nothing came within the keep-alive.*, client id pump$/);
  });

  test("has in its log what happened before the page was opened", async () => {
    await using _page = await showPage(<LogSection device={deviceOf("pump")} />, answering(entries));
    const list = await screen.findByRole("list", { name: "Connections and problems" });
    expect(within(list).getAllByRole("listitem")).toHaveLength(3);
    within(list).getByText("message dropped");
    within(list).getByText("the event is no JSON, topic pump/event/x, client id pump");
  });

  test("has nothing to show where nothing happened", async () => {
    await using page = await showPage(<ConnectionCard device={deviceOf("pump")} />, answering([]));
    await waitFor(() => expect(page.requests).toContain("GET /api/v2/devices/pump/diagnostics"));
    expect(screen.queryByText("Last refused")).toBeNull();
  });
});

test("a wrong client id is named, and a reason without an explanation is shown in its words", () => {
  expect(diagnosisDetail(diagnosis({ reason: "wrong_client_id", client_id: "other" }))).toMatch(
    /from 10.0.0.7, client id other$/,
  );
  expect(
    diagnosisDetail(diagnosis({ name: "disconnected", reason: "stale_connection", client_id: null })),
  ).toBe("stale connection, from 10.0.0.7");
});
