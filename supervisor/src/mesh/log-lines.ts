import { parseJson } from "@devmesh/contracts/model/json";
import { visibleText } from "@devmesh/contracts/model/visible-text";
import { z } from "zod";

/** Levels of log lines, from the least to the most important. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof logLevels)[number];

/** A line of a log, for people. */
export interface ReadableLine {
  /** Unix ms; null for a line that has none, such as one of a stack. */
  readonly at: number | null;
  readonly level: LogLevel;
  readonly text: string;
}

const ServiceLine = z.looseObject({
  time: z.iso.datetime(),
  level: z.enum(logLevels),
  msg: z.string().default(""),
  err: z.object({ message: z.string(), stack: z.string().optional() }).optional(),
});

/** Members that say nothing to a person who reads the log of one mesh. */
const silent: ReadonlySet<string> = new Set(["service", "replica", "trace_id", "span_id", "request_id"]);

const brokerLevels: Readonly<Record<string, LogLevel>> = {
  TRC: "trace",
  DBG: "debug",
  INF: "info",
  WRN: "warn",
  ERR: "error",
  FTL: "fatal",
};

/** Reads a line of a service, which is JSON, or of nats-server. Any other line is shown as it is. */
export function readableLine(line: string): ReadableLine {
  const found = ServiceLine.safeParse(line.startsWith("{") ? parseJson(line) : undefined);
  if (found.success) {
    const { time, level, msg, err, ...members } = found.data;
    const said = Object.entries(members)
      .filter(([name]) => !silent.has(name))
      .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
    const stack =
      level === "error" || level === "fatal"
        ? err?.stack?.split("\n").slice(1).map(visibleText).join("\n")
        : undefined;
    // Parsing brings back what the service has escaped.
    const text = visibleText(
      [msg, ...(err === undefined ? [] : [err.message]), ...said].filter(Boolean).join("  "),
    );
    return { at: Date.parse(time), level, text: stack ? `${text}\n${stack}` : text };
  }
  const broker = /^\[\d+\] (\d{4})\/(\d\d)\/(\d\d) (\d\d:\d\d:\d\d\.\d{3})\d* \[(\w{3})\] (.*)$/s.exec(line);
  if (broker === null) return { at: null, level: "info", text: line };
  const [, year, month, day, time, level = "", text = ""] = broker;
  // nats-server writes local time.
  return { at: Date.parse(`${year}-${month}-${day}T${time}`), level: brokerLevels[level] ?? "info", text };
}
