import { visibleText } from "@devmesh/contracts/model/visible-text";
import { type Logger, type LoggerOptions as PinoOptions, pino } from "pino";

export type { Logger } from "pino";

/** Members that are redacted in the first three levels of a logged object. */
const secrets = [
  "password",
  "pass",
  "token",
  "access_token",
  "authorization",
  "Authorization",
  "key",
  "secret",
  "seed",
  "public_key",
  "cookie",
];

const redactedPaths = secrets.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

/** Type, message, stack and code of an error: other members, such as a driver's, can hold user data. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) };
  const { type, message, stack, code } = pino.stdSerializers.err(error);
  return code === undefined ? { type, message, stack } : { type, message, stack, code };
}

/** What a logger is made from. */
export interface LoggerOptions {
  readonly service: string;
  readonly level: string;
  /** Which replica writes, on each line as `replica`. */
  readonly replica?: string;
  /** Where the lines go. Default: stdout. */
  readonly destination?: { write(line: string): void };
}

/** A logger that writes one JSON object a line, secrets redacted and characters that cannot be seen escaped. */
export function createLogger({ service, level, replica, destination }: LoggerOptions): Logger {
  const options: PinoOptions = {
    level,
    base: replica === undefined ? { service } : { service, replica },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: describeError },
    redact: { paths: redactedPaths, censor: "[redacted]" },
  };
  return pino(options, visible(destination ?? sharedStdout()));
}

/** JSON leaves all but C0 as it is; a stranger's text must not rearrange the terminal of a reader. */
function visible(destination: { write(line: string): void }): { write(line: string): void } {
  return {
    write: (line) => destination.write(/[^ -~\n]/.test(line) ? `${visibleText(line.trimEnd())}\n` : line),
  };
}

/** Shared by the loggers of a process, whose lines keep their order. */
let stdout: ReturnType<typeof stdoutByTurns> | undefined;

function sharedStdout(): ReturnType<typeof stdoutByTurns> {
  stdout ??= stdoutByTurns();
  return stdout;
}

/**
 * Writes the lines of one turn of the event loop together. The write is synchronous: buffered lines would block the
 * exit of a process whose reader is gone.
 */
function stdoutByTurns(): { write(line: string): void } {
  const destination = pino.destination({ dest: 1, sync: true });
  let lines = "";
  const flush = () => {
    const batch = lines;
    lines = "";
    if (batch !== "") destination.write(batch);
  };
  process.on("exit", flush);
  return {
    write(line) {
      if (lines === "") setImmediate(flush);
      lines += line;
    },
  };
}
