import type { AlertMail } from "@devmesh/contracts/mailer";
import { expect, test } from "@jest/globals";
import { writeAlertMail } from "../src/alert-mail.ts";

const publicUrl = new URL("https://mesh.example.com/");
const alert: AlertMail["alerts"][number] = {
  alert_id: "a1",
  state: "firing",
  rule_id: "r1",
  rule_name: "Freezer is warm",
  severity: "critical",
  device_id: "freezer-1",
  device_name: "Cellar",
  condition: "temperature > -15",
  value: "-12.5",
  since: "2026-01-31T12:00:00.000Z",
  note: "Call Ann",
};

test("one alert is named in the subject, with device, value, threshold, time, links and how to stop it", () => {
  const { subject, text, html } = writeAlertMail(
    { to: "ann@example.com", alerts: [alert], more: 0 },
    publicUrl,
  );
  expect(subject).toBe("Firing: Freezer is warm, Cellar (freezer-1)");
  for (const body of [text, html]) {
    for (const part of ["Cellar (freezer-1)", "-12.5", "31 January 2026, 12:00 UTC", "Call Ann", "critical"])
      expect(body).toContain(part);
    expect(body).toContain("https://mesh.example.com/devices/freezer-1");
    expect(body).toContain("https://mesh.example.com/alerts/a1");
    expect(body).toContain("https://mesh.example.com/alerts/silences");
  }
  expect(text).toContain('Or POST {"rule_ids":["r1"],"until":"<time>"} to /api/v2/silences.');
  expect(text).toContain("temperature > -15");
  expect(html).toContain("temperature &gt; -15");
});

test("several alerts are one mail, which says how many it does not name", () => {
  const cleared = { ...alert, state: "cleared", device_id: "freezer-2", device_name: null } as const;
  const mail = { to: "ann@example.com", alerts: [alert, cleared], more: 1_998 };
  const { subject, text } = writeAlertMail(mail, publicUrl);
  expect(subject).toBe("2000 alerts: Freezer is warm");
  expect(text).toContain("Cleared: Freezer is warm (critical)\nDevice: freezer-2");
  expect(text).toContain("And 1998 more.");
});

test("a storm is told with its numbers, its first devices and a link to all", () => {
  const storm = {
    ...{
      rule_id: "r1",
      rule_name: "Freezer <is> away",
      severity: "critical" as const,
      condition: "offline",
      note: null,
    },
    ...{ firing: 1_990, cleared: 10, device_ids: ["a", "b"] },
  };
  const mail = {
    to: "ann@example.com",
    alerts: [],
    more: 0,
    storms: [storm],
  };
  const { subject, text, html } = writeAlertMail(mail, publicUrl);
  expect(subject).toBe("2000 alerts: Freezer <is> away");
  expect(text).toContain(
    "2000 alerts: Freezer <is> away (critical)\nCondition: offline\nFiring: 1990\nCleared: 10",
  );
  expect(text).toContain("The first devices: a, b\nIts alerts: https://mesh.example.com/alerts?rule=r1");
  expect(html).toContain("<strong>2000 alerts: Freezer &lt;is&gt; away (critical)</strong>");
});

test("no text of a person or a device reaches the mail as HTML, or on a line that is not its own", () => {
  const evil = '<img src=x onerror="alert(1)">\r\nBcc: eve@example.com';
  const hostile = { ...alert, rule_name: evil, device_name: evil, condition: evil, value: evil, note: evil };
  const { subject, text, html } = writeAlertMail(
    { to: "ann@example.com", alerts: [hostile], more: 0 },
    publicUrl,
  );
  expect(html).not.toContain("<img");
  const storm = { ...hostile, firing: 21, cleared: 0, device_ids: [evil] };
  expect(
    writeAlertMail({ to: "ann@example.com", alerts: [], more: 0, storms: [storm] }, publicUrl).html,
  ).not.toContain("<img");
  expect(subject).not.toMatch(/[\r\n]/);
  expect(text.split("\n").filter((line) => line.startsWith("Bcc"))).toEqual([]);
});

test("a test names the channel, as text", () => {
  const mail = { to: "ann@example.com", alerts: [], more: 0, test: "<b>night</b>\r\nBcc: eve@example.com" };
  const { subject, text, html } = writeAlertMail(mail, publicUrl);
  expect(subject).toBe("Test of the channel <b>night</b> Bcc: eve@example.com");
  expect(text.trim().split("\n")).toHaveLength(1);
  expect(html).not.toContain("<b>night");
});
