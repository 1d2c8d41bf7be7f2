import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, styleText } from "node:util";
import { mesh } from "@devmesh/contracts/mesh";
import { dataFolder } from "./mesh/data-folder.ts";
import { type LogLevel, logLevels } from "./mesh/log-lines.ts";
import { logReader, type PartLine } from "./mesh/read-logs.ts";
import { meshSettings } from "./mesh/settings.ts";
import { helpOption, runCommand, WrongUsage } from "./process/command.ts";
import { StartFailure } from "./process/errors.ts";
import { stopRequest } from "./process/stop-request.ts";

const parts = [...Object.keys(mesh), "nats-server"];

const usage = `Usage: npm run logs [-- [PART]... [--lines N] [--level LEVEL] [--follow]]

Shows the last lines of the logs in DATA_DIR/logs in the order of time, of all parts of the mesh or of some:
${parts.join(", ")}.

  --lines N      as many lines, 100 unless said otherwise
  --level LEVEL  only lines of this level or above: ${logLevels.join(", ")}; info unless said otherwise
  --follow, -f   goes on with new lines until Ctrl-C`;

/** Pause between two looks at the files, in milliseconds. */
const followMs = 300;

interface Wanted {
  readonly parts: readonly string[];
  readonly lines: number;
  readonly level: LogLevel;
  readonly follow: boolean;
}

function read(args: string[]): Wanted | "help" {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      lines: { type: "string", default: "100" },
      level: { type: "string", default: "info" },
      follow: { type: "boolean", short: "f", default: false },
      ...helpOption,
    },
  });
  if (values.help) return "help";
  const unknown = positionals.find((part) => !parts.includes(part));
  if (unknown !== undefined) throw new WrongUsage(`No part of the mesh is called ${unknown}.`);
  if (!/^\d{1,6}$/.test(values.lines)) throw new WrongUsage("--lines takes a number.");
  const level = logLevels.find((known) => known === values.level);
  if (level === undefined) throw new WrongUsage(`--level takes one of ${logLevels.join(", ")}.`);
  return {
    parts: positionals.length === 0 ? parts : positionals,
    lines: Number(values.lines),
    level,
    follow: values.follow,
  };
}

async function run({ parts, lines, level, follow }: Wanted): Promise<void> {
  const folder = dataFolder(meshSettings(process.env).dataDir);
  const readLogs = logReader(folder, parts, level);
  const present = await readLogs();
  if (present.length === 0 && !follow)
    throw new StartFailure(`${folder.path}/logs has no such lines; set DATA_DIR as for the start.`);
  print(lines === 0 ? [] : present.slice(-lines));
  const stop = stopRequest();
  while (follow && !stop.signal.aborted) {
    await sleep(followMs, undefined, { signal: stop.signal }).catch(() => undefined);
    print(await readLogs());
  }
}

const colors: Readonly<Record<LogLevel, Parameters<typeof styleText>[0]>> = {
  trace: "dim",
  debug: "dim",
  info: "green",
  warn: "yellow",
  error: "red",
  fatal: "red",
};
const partWidth = Math.max(...parts.map((part) => part.length));

function print(lines: readonly PartLine[]): void {
  for (const { at, part, level, text } of lines) {
    const shownLevel = styleText(colors[level], level.padEnd(5), { stream: process.stdout });
    process.stdout.write(`${localTime(at)} ${part.padEnd(partWidth)} ${shownLevel} ${text}\n`);
  }
}

/** `2026-01-31 12:00:00.000` in the zone of the reader. */
function localTime(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().replace("T", " ").slice(0, -1);
}

await runCommand({ usage, read, run });
