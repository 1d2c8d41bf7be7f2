import type { AlertMail, AlertStorm } from "@devmesh/contracts/mailer";
import { redactSecrets } from "@devmesh/contracts/model/api-key";
import type { RuleCondition } from "@devmesh/contracts/model/rule";
import { visibleText } from "@devmesh/contracts/model/visible-text";

type NamedAlert = AlertMail["alerts"][number];

/** Characters of a message to a chat, of one of its texts, of the ids of a storm, and of the number of the others. */
const maxText = 2_000;
const maxPart = 300;
const maxIds = 1_000;
const othersRoom = 30;

/** Storms and alerts as a chat shows them, a line each, of at most 2,000 characters: as many as have room. */
export function chatText(
  { alerts, more, storms = [] }: Pick<AlertMail, "alerts" | "more" | "storms">,
  publicUrl: string | undefined,
): string {
  const link = publicUrl === undefined ? [] : [`${publicUrl}/alerts`];
  const lines: string[] = [];
  let room = maxText - othersRoom - link.join().length - 1;
  const all = [
    ...storms.map((storm) => ({ line: stormLine(storm), count: storm.firing + storm.cleared })),
    ...alerts.map((alert) => ({ line: lineOf(alert), count: 1 })),
  ];
  let others = more;
  for (const { line, count } of all) {
    room -= line.length + 1;
    if (room < 0) others += count;
    else lines.push(line);
  }
  return [...lines, ...(others > 0 ? [`And ${others} more.`] : []), ...link].join("\n");
}

function stormLine({
  rule_name,
  severity,
  condition,
  firing,
  cleared,
  device_ids,
  note,
}: AlertStorm): string {
  const what = `${firing + cleared} alerts of ${oneLine(rule_name)} (${severity})`;
  const counts = `${firing} firing, ${cleared} cleared`;
  const devices = `first ${oneLine(device_ids.join(", "), maxIds)}`;
  return `${what}: ${oneLine(condition)}: ${counts}; ${devices}${note === null ? "" : `. ${oneLine(note)}`}`;
}

function lineOf(alert: NamedAlert): string {
  const { state, rule_name, severity, device_name, device_id, condition, value, since, note } = alert;
  const device = device_name === null ? device_id : `${oneLine(device_name)} (${device_id})`;
  const shown = value === null ? "" : `, value ${oneLine(value)}`;
  const what = `${state === "firing" ? "Firing" : "Cleared"}: ${oneLine(rule_name)} (${severity}), ${device}`;
  return `${what}: ${oneLine(condition)}${shown}, since ${since}${note === null ? "" : `. ${oneLine(note)}`}`;
}

function oneLine(text: string, most = maxPart): string {
  const line = visibleText(text.replace(/\s+/gu, " ").trim());
  return line.length > most ? `${line.slice(0, most).toWellFormed()}…` : line;
}

/** A value as people read it; null where the condition has none. A device may publish its token as a value. */
export function valueText(value: unknown): string | null {
  return value === null ? null : redactSecrets(JSON.stringify(value)).slice(0, 256).toWellFormed();
}

/** A condition in words, with its threshold. */
export function conditionText(when: RuleCondition): string {
  if (when.kind === "offline") return `offline for longer than ${when.longer_than}`;
  if (when.kind === "silent")
    return `${when.topic === undefined ? "no record" : `no record of ${when.topic}`} for longer than ${when.longer_than}`;
  if (when.kind === "not_taken") return `does not do what was asked for longer than ${when.longer_than}`;
  if (when.kind === "event") return `${when.name} ${when.count} times within ${when.within}`;
  const { is, than } = when;
  const bound = Array.isArray(than) ? than.join(" to ") : JSON.stringify(than);
  if (when.kind === "shadow") return `${when.pointer} of the shadow ${is} ${bound}`;
  const { topic, pointer, clear_at } = when;
  const clears = clear_at === undefined ? "" : `, until ${clear_at}`;
  return `${topic}${pointer === "" ? "" : ` ${pointer}`} ${is} ${bound}${clears}`;
}
