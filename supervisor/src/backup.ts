import { parseArgs } from "node:util";
import { dataFolder } from "./mesh/data-folder.ts";
import { storeUrlOf } from "./mesh/service-environment.ts";
import { meshSettings } from "./mesh/settings.ts";
import { backUpStores } from "./mesh/store-backup.ts";
import { helpOption, runCommand, WrongUsage } from "./process/command.ts";
import { StartFailure } from "./process/errors.ts";

const usage = `Usage: npm run backup -- FOLDER

Copies the SQLite stores of the mesh with the same DATA_DIR and STORE_URL into a folder that is missing or empty; the mesh may run.
What seals the secrets in them is not copied: keep DATA_DIR/installation.json elsewhere, see docs/operations/backup.md.`;

// The copies are private to their owner, as the stores are.
process.umask(0o077);

function read(args: string[]): { folder: string } | "help" {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: helpOption });
  if (values.help) return "help";
  const [folder, ...others] = positionals;
  if (!folder || others.length > 0) throw new WrongUsage("One folder is needed.");
  return { folder };
}

async function run({ folder }: { readonly folder: string }): Promise<void> {
  const settings = meshSettings(process.env);
  const data = dataFolder(settings.dataDir);
  const copied = await backUpStores((service) => fileOf(storeUrlOf(service, settings, data)), folder);
  for (const { path, bytes } of copied) process.stdout.write(`wrote ${path}, ${inUnits(bytes)}\n`);
  process.stdout.write(
    `not copied: ${data.installation}, without which the secrets in the stores cannot be read; keep it elsewhere\n`,
  );
}

/** A size in the largest unit that gives a number of at least one. */
function inUnits(bytes: number): string {
  const unit = bytes < 1024 ** 2 ? "KB" : bytes < 1024 ** 3 ? "MB" : "GB";
  const size = bytes / { KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 }[unit];
  return `${size.toLocaleString("en", { maximumFractionDigits: 1 })} ${unit}`;
}

function fileOf(storeUrl: string): string {
  const { path } = /^sqlite:(?<path>.+)$/.exec(storeUrl)?.groups ?? {};
  if (path === undefined) {
    throw new StartFailure(
      "STORE_URL names no SQLite stores; MongoDB has mongodump, see docs/operations/backup.md.",
    );
  }
  return path;
}

await runCommand({ usage, read, run });
