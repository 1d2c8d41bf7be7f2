/** How each command takes the wish to be explained, for `parseArgs`. */
export const helpOption = { help: { type: "boolean", short: "h" } } as const;

/** A command line that asks for nothing that the command can do; the message is one sentence for the user. */
export class WrongUsage extends Error {
  override readonly name = "WrongUsage";
}

/** A command of the repository: `npm run NAME -- ARGUMENTS`. */
export interface Command<T extends object> {
  /** How it is called and what it does, for the user. */
  readonly usage: string;
  /**
   * What a command line asks for, without the names of node and of the script. Throws {@link WrongUsage}, or what
   * `parseArgs` throws.
   */
  read(args: string[]): T | "help";
  /** Does it. What it throws is told to the user by its message alone. */
  run(wanted: T): Promise<void>;
}

/**
 * Runs a command with this process's arguments, then ends the process, whatever the command left open: 0 when it was
 * done or explained, 1 when it failed, 2 for a wrong command line.
 */
export async function runCommand<T extends object>(command: Command<T>): Promise<never> {
  const exitCode = await run(command);
  // A pipe may not have taken all of it yet.
  await Promise.all([process.stdout, process.stderr].map(written));
  process.exit(exitCode);
}

async function run<T extends object>({ usage, read, run }: Command<T>): Promise<0 | 1 | 2> {
  let wanted: T | "help";
  try {
    wanted = read(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n\n${usage}\n`);
    return 2;
  }
  if (wanted === "help") {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  try {
    await run(wanted);
    return 0;
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    return 1;
  }
}

/** Resolves when what was written before has gone, or nobody is left to read it. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.once("error", () => resolve());
    stream.write("", () => resolve());
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
