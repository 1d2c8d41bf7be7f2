import type { Diagnosis } from "@devmesh/contracts/model/diagnostics";
import { describe, expect, test } from "@jest/globals";
import { screen, waitFor } from "@testing-library/react";
import { ConnectWizard } from "../src/features/devices/connect/connect-wizard.tsx";
import { OverviewSection } from "../src/features/devices/page/overview-section.tsx";
import { deviceOf, diagnosisOf } from "./devices.ts";
import { showPage } from "./show.tsx";

const broker = { host: null as string | null, port: 1883, tls: false };
const refused = diagnosisOf("2026-01-31T12:00:00.000Z");
const connected: Diagnosis = { ...refused, name: "connected", reason: null };
const record = (timestamp: string) => ({
  id: 1,
  timestamp,
  device_id: "pump",
  topic: "db/pump/temperature",
  message: '{"celsius":21.5}',
});

const server = (changes: { mqtt?: object; history?: readonly Diagnosis[]; records?: readonly object[] }) => ({
  "GET /api/v2/mqtt": () => [200, changes.mqtt ?? broker] as const,
  "GET /api/v2/devices/pump/diagnostics": () => [200, changes.history ?? []] as const,
  "GET /api/v2/data": () => [200, changes.records ?? []] as const,
});
const wizard = <ConnectWizard id="pump" token="dt_1" />;
const problem = () => screen.queryByRole("alert");

describe("the wizard that connects a device", () => {
  test("has a tab for each client, which the keyboard reaches", async () => {
    await using page = await showPage(wizard, server({ mqtt: { ...broker, host: "mqtt.example.com" } }));
    await screen.findByText(/mosquitto_pub -h mqtt.example.com -p 1883 -i pump:sensor -u pump -P dt_1/);
    screen.getByRole("tab", { name: "mosquitto" }).focus();
    await page.user.keyboard("{ArrowRight}");
    expect(screen.getByRole("tab", { name: "Python (paho)" }).getAttribute("aria-selected")).toBe("true");
    screen.getByRole("region", { name: "device.py" });
    expect(screen.queryByText(/not run on a board/)).toBeNull();
    expect(screen.queryByText(/mosquitto_pub/)).toBeNull();
    await page.user.click(screen.getByRole("tab", { name: "MicroPython" }));
    screen.getByText(/from umqtt.simple import MQTTClient/);
    screen.getByText(/not run on a board/);
    expect(screen.queryByText(/A board cannot reach/)).toBeNull();
  });

  test("shows no command before it knows where the broker is", async () => {
    await using page = await showPage(wizard, server({ mqtt: { ...broker, port: 20_540 } }));
    expect(screen.queryByText(/mosquitto_pub/)).toBeNull();
    await screen.findByText(/^while mosquitto_pub -h localhost -p 20540/);
    expect(page.requests).toContain("GET /api/v2/mqtt");
  });

  test("takes the host of the page where the broker has no other, which a board may not reach", async () => {
    await using page = await showPage(wizard, server({}));
    await screen.findByText(/^while mosquitto_pub -h localhost -p 1883/);
    expect(screen.queryByText(/A board cannot reach/)).toBeNull();
    await page.user.click(screen.getByRole("tab", { name: "ESP-IDF" }));
    screen.getByText(/A board cannot reach localhost/);
  });

  test("keeps the last refusal until the first message, also when the device is connected", async () => {
    await using _page = await showPage(wizard, server({ history: [connected, refused] }));
    await screen.findByText("The device is connected. Waiting for the first message…");
    expect(problem()).not.toBeNull();
  });

  test("says why a login was refused while it waits", async () => {
    await using _page = await showPage(wizard, server({ history: [refused, connected] }));
    await screen.findByText("Waiting for the first message…");
    await waitFor(() =>
      expect(problem()?.textContent).toMatch(/^Login refused: wrong password, from 10.0.0.7/),
    );
  });

  test("shows the message that came, and only problems after it", async () => {
    const changes = { history: [refused], records: [record("2026-01-31T12:00:01.000Z")] };
    await using _page = await showPage(wizard, server(changes));
    await screen.findByText("The device sends messages.");
    const shown = screen.getByText('{"celsius":21.5}').parentElement;
    expect(shown?.textContent).toMatch(/: db\/pump\/temperature \{"celsius":21.5\}$/);
    await waitFor(() => expect(problem()).toBeNull());
  });

  test("is linked from the overview of a device that was never there", async () => {
    await using page = await showPage(<OverviewSection device={deviceOf("pump")} />, server({}));
    const link = screen.getByRole("link", { name: "Connect it" });
    expect(link.getAttribute("href")).toBe("/devices/pump/credentials");
    page.show(<OverviewSection device={deviceOf("pump", { last_seen: refused.last_at })} />);
    await waitFor(() => expect(screen.queryByRole("link", { name: "Connect it" })).toBeNull());
  });
});
