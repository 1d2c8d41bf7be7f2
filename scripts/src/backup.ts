import { parseArgs } from "node:util";
import { dataFolder } from "./mesh/data-folder.ts";
import { storeUrlOf } from "./mesh/service-environment.ts";
import { meshSettings } from "./mesh/settings.ts";
import { backUpStores } from "./mesh/store-backup.ts";
import { StartFailure } from "./process/running-process.ts";

const usage = `Usage: npm run backup -- FOLDER

Copies the SQLite stores of the mesh with the same DATA_DIR and STORE_URL into a folder that is missing or empty; the mesh may run.
What seals the secrets in them is not copied: keep DATA_DIR/installation.json elsewhere, see docs/operations.md.`;

// The copies are their owner's alone, as the stores are.
process.umask(0o077);

/** What the command line asks for. */
function wanted(args: string[]): { folder: string } | "help" | { wrong: string } {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { help: { type: "boolean", short: "h" } },
    });
    if (values.help) return "help";
    const [folder, ...others] = positionals;
    return folder && others.length === 0 ? { folder } : { wrong: "One folder is needed." };
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : String(error) };
  }
}

async function run(): Promise<number> {
  const asked = wanted(process.argv.slice(2));
  if (asked === "help") {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  if ("wrong" in asked) {
    process.stderr.write(`${asked.wrong}\n\n${usage}\n`);
    return 2;
  }
  const settings = meshSettings(process.env);
  const folder = dataFolder(settings.dataDir);
  await backUpStores((service) => fileOf(storeUrlOf(service, settings, folder)), asked.folder);
  return 0;
}

function fileOf(storeUrl: string): string {
  const { path } = /^sqlite:(?<path>.+)$/.exec(storeUrl)?.groups ?? {};
  if (path === undefined) {
    throw new StartFailure(
      "STORE_URL names no SQLite stores; MongoDB has mongodump, see docs/operations.md.",
    );
  }
  return path;
}

try {
  process.exitCode = await run();
} catch (error) {
  process.stderr.write(`${error instanceof StartFailure ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
