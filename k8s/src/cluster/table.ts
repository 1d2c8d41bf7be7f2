import type { CountedPeriod } from "./load.ts";

const columns = [
  "period",
  "seconds",
  "requests a second",
  "requests",
  "failed",
  "device offline",
  "longest gap, s",
  "messages",
  "not acknowledged",
  "their gap, s",
  "new logins",
] as const;

/** The periods as a table in Markdown, with the causes of failures in a list below it. */
export function periodTable(periods: readonly (readonly [string, CountedPeriod])[]): string {
  const rows = periods.map(([name, { requests, messages, logins }]) => [
    name,
    requests.seconds.toFixed(0),
    (requests.sent / requests.seconds).toFixed(0),
    String(requests.sent),
    String(requests.failed),
    String(requests.offline),
    (requests.longestGapMs / 1_000).toFixed(1),
    String(messages.sent),
    String(messages.failed),
    (messages.longestGapMs / 1_000).toFixed(1),
    String(logins),
  ]);
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const failures = periods.flatMap(([name, { requests, messages }]) =>
    [...requests.failures, ...messages.failures].map((failure) => `- ${name}: ${failure}`),
  );
  return [line(columns), line(columns.map(() => "---")), ...rows.map(line), "", ...failures].join("\n");
}
