import type { Readable } from "node:stream";
import { visibleText } from "@devmesh/contracts/model/visible-text";
import { cutLine, redactedLine } from "@devmesh/device-broker/broker-log";
import { type Clock, systemClock } from "@devmesh/service-kit/clock";
import { readLines } from "@devmesh/service-kit/process/line-reader";
import { z } from "zod";
import { boundedLog } from "../process/bounded-log.ts";

/** Time, in milliseconds, in which a line is not shown again. */
const QUIET_MS = 10_000;
/** Most kinds of lines that are folded at one time. */
const REMEMBERED = 200;

/** The members of a service's log line that the short form shows. */
const LogLine = z.object({
  level: z.enum(["trace", "debug", "info", "warn", "error", "fatal"]),
  msg: z.string().optional(),
  err: z.object({ message: z.string() }).optional(),
});

/** A warning or error in a log. */
interface LoggedProblem {
  readonly text: string;
  /** What the user sees at once; null for what the report of the process's end will repeat. */
  readonly shown: string | null;
}

/** The log of one part of the mesh. */
export interface PartLog {
  /** Writes every line of a stream to the file, and shows warnings and errors to the user in short form. */
  follow(stream: Readable): void;
  /** The last warning or error, as a reason for the end of the process. */
  lastProblem(): string | null;
  /** What was logged so far explains no later end. */
  forgetProblem(): void;
  close(): void;
}

/** Opens the log file of a service, whose lines are JSON. `show` gets the short form: `keys warn: store is slow`. */
export function serviceLog(name: string, file: string, show: (line: string) => void): PartLog {
  return partLog(file, show, (line) => readServiceLine(name, line));
}

/**
 * Opens the log file of nats-server, whose lines contain `[WRN]`, `[ERR]`, `[FTL]`. A failed login logs its user name
 * and client id: tokens are redacted, and lines cut. `onWriteError` gets the cause of a write error, which only a
 * restart ends, `onLine` each line before it is cut.
 */
export function brokerLog(
  file: string,
  show: (line: string) => void,
  onWriteError: (cause: string) => void,
  onLine: (line: string) => void,
): PartLog {
  const readLine = (line: string) => {
    const cause = keptWriteError.exec(line)?.groups?.cause;
    if (cause !== undefined) onWriteError(cause);
    onLine(line);
    return readBrokerLine(line);
  };
  return partLog(file, show, readLine, { redact: redactedLine, cut: cutLine });
}

/**
 * What nats-server logs once for each stream and consumer, and when it turns JetStream off. Anchored at the line's
 * begin, since what follows may hold a client id, which a device chooses.
 */
const keptWriteError =
  /^\[\d+\] \S+ \S+ \[ERR\] JetStream (?:(?:stream|consumer) '.*' critical write error: (?:.*: )?(?<cause>.*)$|(?<cause>out of .*), will be DISABLED)/;

/** How lines are changed: all of them, and then those that are written and shown. */
interface LineRules {
  readonly redact: (line: string) => string;
  readonly cut: (line: string) => string;
}

const same = (line: string) => line;

function partLog(
  file: string,
  show: (line: string) => void,
  read: (line: string) => LoggedProblem | null,
  { redact, cut }: LineRules = { redact: same, cut: same },
): PartLog {
  const log = boundedLog(file);
  let problem: string | null = null;
  return {
    follow(stream) {
      readLines(stream, (received) => {
        const lines = received.map(redact);
        log.write(`${lines.map(cut).join("\n")}\n`);
        for (const line of lines) {
          const found = read(line);
          if (!found) continue;
          // Parsing a line of JSON brings back what its service has escaped.
          problem = cut(visibleText(found.text));
          if (found.shown !== null) show(cut(visibleText(found.shown)));
        }
      });
    },
    lastProblem: () => problem,
    forgetProblem() {
      problem = null;
    },
    close: log.close,
  };
}

/** A line that need not be parsed: of each request there is one. */
const harmless = /^\{"level":"(?:trace|debug|info)"/;

function readServiceLine(name: string, line: string): LoggedProblem | null {
  if (harmless.test(line)) return null;
  const parsed = parseLine(line);
  if (!parsed) {
    // Node's own last words: a stack is indented, the sentence is not.
    if (!/^[A-Za-z]/.test(line) || line.startsWith("Node.js v") || line.startsWith("node:")) return null;
    return { text: line.replace(/\.$/, ""), shown: null };
  }
  if (parsed.level !== "warn" && parsed.level !== "error" && parsed.level !== "fatal") return null;
  const text = [parsed.msg, parsed.err?.message].filter(Boolean).join(": ") || "(no message)";
  return { text, shown: parsed.level === "fatal" ? null : `${name} ${parsed.level}: ${text}` };
}

function readBrokerLine(line: string): LoggedProblem | null {
  const found = /\[(WRN|ERR|FTL)\] (.*)/.exec(line) ?? /^(nats-server): (.*)/.exec(line);
  const text = found?.[2];
  if (!text) return null;
  return { text, shown: found[1] === "ERR" ? `nats-server: ${text}` : null };
}

function parseLine(line: string): z.infer<typeof LogLine> | null {
  try {
    return LogLine.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}

/**
 * Shows each line, but of those that differ only in numbers and quoted texts one in ten seconds, followed by the number
 * of the others: a fault that hits every message must not bury the rest.
 */
export function foldRepeats(show: (line: string) => void, clock: Pick<Clock, "schedule"> = systemClock) {
  const folded = new Map<string, { line: string; more: number }>();
  return (line: string): void => {
    const pattern = line.replaceAll(/"[^"]*"|\d[\d.:]*/g, "…");
    const known = folded.get(pattern);
    if (known !== undefined) {
      known.line = line;
      known.more++;
      return;
    }
    show(line);
    // Beyond the bound lines are shown unfolded.
    if (folded.size >= REMEMBERED) return;
    const repeats = { line, more: 0 };
    folded.set(pattern, repeats);
    const report = () => {
      if (repeats.more === 0) {
        folded.delete(pattern);
        return;
      }
      const others = repeats.more === 1 ? "" : `… ${repeats.more} more in ${QUIET_MS / 1_000} s, the last: `;
      show(`${others}${repeats.line}`);
      repeats.more = 0;
      clock.schedule(QUIET_MS, report);
    };
    clock.schedule(QUIET_MS, report);
  };
}
