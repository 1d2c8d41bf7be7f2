import type { AlertMail, AlertStorm } from "@devmesh/contracts/mailer";
import { visibleText } from "@devmesh/contracts/model/visible-text";
import { escapeHtml } from "@devmesh/service-kit/escape-html";
import { type MailContent, spellTime } from "./mail-words.ts";

type MailedAlert = AlertMail["alerts"][number];

/** A paragraph: its lines, of which the first one is strong, and links with their labels. */
interface Paragraph {
  readonly lines: readonly string[];
  readonly links: readonly (readonly [label: string, url: string])[];
}

/** Characters of a subject. */
const maxSubject = 150;

/** Writes a mail about alerts. All its texts come from people and devices: they are escaped, and stay on their line. */
export function writeAlertMail(mail: AlertMail, publicUrl: URL): MailContent {
  const { alerts, more, storms = [], test } = mail;
  if (test !== undefined) return writeTest(oneLine(test));
  const service = publicUrl.href.replace(/\/+$/, "");
  const others = more > 0 ? [{ lines: [`And ${more} more.`], links: [] }] : [];
  const paragraphs = [
    ...storms.map((storm) => stormParagraph(storm, service)),
    ...alerts.map((alert) => alertParagraph(alert, service)),
    ...others,
    { lines: [], links: [["All alerts", `${service}/alerts`]] as const },
    { lines: [], links: [["To send none of them for a time", `${service}/alerts/silences`]] as const },
    { lines: [howToSilence(mail)], links: [] },
  ];
  return mailOf(subjectOf(mail), paragraphs.map(textOf).join("\n\n"), paragraphs.map(htmlOf).join("\n"));
}

function subjectOf({ alerts, more, storms = [] }: AlertMail): string {
  const [first] = alerts;
  const count = storms.reduce((sum, { firing, cleared }) => sum + firing + cleared, alerts.length + more);
  if (first !== undefined && count === 1)
    return `${stateOf(first)}: ${oneLine(first.rule_name)}, ${nameOf(first)}`;
  const rules = [...new Set([...storms, ...alerts].map(({ rule_name }) => oneLine(rule_name)))];
  return `${count} alerts: ${rules.slice(0, 3).join(", ")}`;
}

/** For those who have a key and no dashboard. */
function howToSilence({ alerts, storms = [] }: AlertMail): string {
  const ids = [...new Set([...storms, ...alerts].map(({ rule_id }) => rule_id))];
  return `Or POST ${JSON.stringify({ rule_ids: ids, until: "<time>" })} to /api/v2/silences.`;
}

function writeTest(channel: string): MailContent {
  const sentence = `This is a test of the channel "${channel}": its alerts are sent to this address.`;
  return mailOf(`Test of the channel ${channel}`, sentence, `<p>${escapeHtml(sentence)}</p>`);
}

function mailOf(subject: string, text: string, html: string): MailContent {
  const title = subject.slice(0, maxSubject).toWellFormed();
  return {
    subject: title,
    text: `${text}\n`,
    html: `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 40em">
${html}
</body>
</html>
`,
  };
}

function alertParagraph(alert: MailedAlert, service: string): Paragraph {
  const { alert_id, rule_name, severity, condition, value, since, note, device_id } = alert;
  const alertUrl = alert_id === undefined ? [] : [`${service}/alerts/${encodeURIComponent(alert_id)}`];
  return {
    lines: [
      `${stateOf(alert)}: ${oneLine(rule_name)} (${severity})`,
      `Device: ${nameOf(alert)}`,
      `Condition: ${oneLine(condition)}`,
      ...(value === null ? [] : [`Value: ${oneLine(value)}`]),
      `Since: ${spellTime(new Date(since))}`,
      ...(note === null ? [] : [`Note: ${oneLine(note)}`]),
    ],
    links: [
      ...alertUrl.map((url) => ["The alert", url] as const),
      ["The device", `${service}/devices/${encodeURIComponent(device_id)}`],
    ],
  };
}

function stormParagraph(storm: AlertStorm, service: string): Paragraph {
  const { rule_id, rule_name, severity, condition, firing, cleared, device_ids, note } = storm;
  return {
    lines: [
      `${firing + cleared} alerts: ${oneLine(rule_name)} (${severity})`,
      `Condition: ${oneLine(condition)}`,
      `Firing: ${firing}`,
      `Cleared: ${cleared}`,
      `The first devices: ${oneLine(device_ids.join(", "))}`,
      ...(note === null ? [] : [`Note: ${oneLine(note)}`]),
    ],
    links: [["Its alerts", `${service}/alerts?rule=${encodeURIComponent(rule_id)}`]],
  };
}

function textOf({ lines, links }: Paragraph): string {
  return [...lines, ...links.map(([label, url]) => `${label}: ${url}`)].join("\n");
}

function htmlOf({ lines, links }: Paragraph): string {
  const [first, ...others] = lines.map(escapeHtml);
  const isHeading = others.length > 0;
  const html = [
    ...(first === undefined ? [] : [isHeading ? `<strong>${first}</strong>` : first]),
    ...others,
    ...links.map(([label, url]) => `${label}: <a href="${escapeHtml(url)}">${escapeHtml(url)}</a>`),
  ];
  return `<p>${html.join("<br>\n")}</p>`;
}

const stateOf = ({ state }: MailedAlert) => (state === "firing" ? "Firing" : "Cleared");

function nameOf({ device_name, device_id }: MailedAlert): string {
  return device_name === null ? device_id : `${oneLine(device_name)} (${device_id})`;
}

function oneLine(text: string): string {
  return visibleText(text.replace(/\s+/gu, " ").trim());
}
