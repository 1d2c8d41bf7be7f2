import { messageOf } from "./errors.ts";

/** What the user sees: `log` goes to standard output, `warn` to standard error, a line each. */
export type Terminal = Pick<Console, "log" | "warn">;

/** The option `--help` of each command, for `parseArgs`. */
export const helpOption = { help: { type: "boolean", short: "h" } } as const;

/** A wrong command line; the message is one sentence for the user. */
export class WrongUsage extends Error {
  override readonly name = "WrongUsage";
}

/** A command of the repository: `npm run NAME -- ARGUMENTS`. */
export interface Command<T extends object> {
  /** Its arguments and what it does, for the user. */
  readonly usage: string;
  /** Parses the arguments. Throws {@link WrongUsage}, or what `parseArgs` throws. */
  read(args: string[]): T | "help";
  /** Of an error that it throws, the user sees the message alone. */
  run(options: T): Promise<void>;
}

/**
 * Runs a command with this process's arguments, then ends the process, whatever the command left open. Exit code: 0
 * for success and `--help`, 1 for a failure, 2 for a wrong command line.
 */
export async function runCommand<T extends object>(command: Command<T>): Promise<never> {
  const exitCode = await run(command);
  // A pipe may not have taken all of it yet.
  await Promise.all([process.stdout, process.stderr].map(written));
  process.exit(exitCode);
}

async function run<T extends object>({ usage, read, run }: Command<T>): Promise<0 | 1 | 2> {
  let options: T | "help";
  try {
    options = read(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n\n${usage}\n`);
    return 2;
  }
  if (options === "help") {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  try {
    await run(options);
    return 0;
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    return 1;
  }
}

/** Resolves when all that was written has been read, or nobody reads any more. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.once("error", () => resolve());
    stream.write("", () => resolve());
  });
}
