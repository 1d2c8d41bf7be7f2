import type { Readable } from "node:stream";
import { secretsInText } from "@devmesh/contracts/model/api-key";
import { z } from "zod";
import { boundedLog } from "../process/bounded-log.ts";
import { readLines } from "../process/line-reader.ts";

/** The members of a service's log line that the short form shows. */
const LogLine = z.object({
  level: z.enum(["trace", "debug", "info", "warn", "error", "fatal"]),
  msg: z.string().optional(),
  err: z.object({ message: z.string() }).optional(),
});

/** What one line means for the user. */
interface Reading {
  /** The reason it gives, should it be the last thing the process says. */
  readonly complaint: string;
  /** What the user sees at once; null for what the report of the process's end will say. */
  readonly shown: string | null;
}

/** What the log of one part of the mesh goes through. */
export interface PartLog {
  /**
   * Takes over a stream of the process: every line goes to the file, warnings and errors in short form to the user
   * too.
   */
  follow(stream: Readable): void;
  /** The last thing the part said that looks like a reason, for the sentence that tells of its end. */
  lastComplaint(): string | null;
  /** What was said so far explains no later end. */
  forgetComplaint(): void;
  close(): void;
}

/** Opens the log file of a service, whose lines are JSON. `show` gets the short form: `keys warn: store is slow`. */
export function serviceLog(name: string, file: string, show: (line: string) => void): PartLog {
  return partLog(file, show, (line) => readServiceLine(name, line));
}

/**
 * Opens the log file of nats-server, whose lines carry `[WRN]`, `[ERR]`, `[FTL]`. It logs user name and client id of
 * a failed login: a token that was sent as one of them is redacted. `onWriteError` gets the cause of a write error:
 * what could not be written to fails from then on, until nats-server restarts.
 */
export function brokerLog(
  file: string,
  show: (line: string) => void,
  onWriteError: (cause: string) => void,
): PartLog {
  const redact = (line: string) => line.replaceAll(secretsInText, "$1_[redacted]");
  const readLine = (line: string) => {
    const cause = keptWriteError.exec(line)?.groups?.cause;
    if (cause !== undefined) onWriteError(cause);
    return readBrokerLine(line);
  };
  return partLog(file, show, readLine, redact);
}

/**
 * What nats-server logs once for each stream and consumer, and when it turns JetStream off altogether. From the
 * line's begin: what follows may be a client id, which a device chooses.
 */
const keptWriteError =
  /^\[\d+\] \S+ \S+ \[ERR\] JetStream (?:(?:stream|consumer) '.*' critical write error: (?:.*: )?(?<cause>.*)$|(?<cause>out of .*), will be DISABLED)/;

function partLog(
  file: string,
  show: (line: string) => void,
  read: (line: string) => Reading | null,
  redact = (line: string) => line,
): PartLog {
  const log = boundedLog(file);
  let complaint: string | null = null;
  return {
    follow(stream) {
      readLines(stream, (received) => {
        const line = redact(received);
        log.write(`${line}\n`);
        const reading = read(line);
        if (!reading) return;
        complaint = reading.complaint;
        if (reading.shown !== null) show(reading.shown);
      });
    },
    lastComplaint: () => complaint,
    forgetComplaint() {
      complaint = null;
    },
    close: log.close,
  };
}

function readServiceLine(name: string, line: string): Reading | null {
  const parsed = parseLine(line);
  if (!parsed) {
    // What Node prints by itself before it ends: a stack is indented, the sentence is not.
    if (!/^[A-Za-z]/.test(line) || line.startsWith("Node.js v") || line.startsWith("node:")) return null;
    return { complaint: line.replace(/\.$/, ""), shown: null };
  }
  if (parsed.level !== "warn" && parsed.level !== "error" && parsed.level !== "fatal") return null;
  const text = [parsed.msg, parsed.err?.message].filter(Boolean).join(": ") || "(no message)";
  return { complaint: text, shown: parsed.level === "fatal" ? null : `${name} ${parsed.level}: ${text}` };
}

function readBrokerLine(line: string): Reading | null {
  const found = /\[(WRN|ERR|FTL)\] (.*)/.exec(line) ?? /^(nats-server): (.*)/.exec(line);
  const text = found?.[2];
  if (!text) return null;
  return { complaint: text, shown: found[1] === "ERR" ? `nats-server: ${text}` : null };
}

function parseLine(line: string): z.infer<typeof LogLine> | null {
  try {
    return LogLine.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}
