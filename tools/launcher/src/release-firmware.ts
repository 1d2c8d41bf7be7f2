import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { accessRunningMesh } from "@devmesh/supervisor/mesh/mesh-file";
import { messageOf } from "@devmesh/supervisor/process/errors";

/** `npm run firmware`: the command of the TypeScript client, without DEVMESH_KEY for the mesh of DATA_DIR. */

const client = fileURLToPath(new URL("../../../clients/typescript", import.meta.url));

/** Runs a program to its end, and ends with its exit code unless it succeeds. */
function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; quiet?: boolean; env?: object },
) {
  const { cwd, quiet = false, env = {} } = options;
  const { status, error } = spawnSync(program, args, {
    ...(cwd !== undefined && { cwd }),
    // What the build prints is not what the command prints.
    stdio: ["inherit", quiet ? 2 : "inherit", "inherit"],
    env: { ...process.env, ...env },
  });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

/** Where the mesh is, for the command. */
async function access(): Promise<object> {
  if (process.env.DEVMESH_URL) return {};
  try {
    const { url, masterKey } = await accessRunningMesh(process.env);
    return { DEVMESH_URL: url, DEVMESH_KEY: masterKey };
  } catch (error) {
    process.stderr.write(`${messageOf(error)} Or set DEVMESH_URL and DEVMESH_KEY.\n`);
    process.exit(1);
  }
}

const args = process.argv.slice(2);
const isHelp = args.includes("--help") || args.includes("-h");
const env = isHelp ? {} : await access();
run("npm", ["run", "--silent", "build"], { cwd: client, quiet: true });
run(process.execPath, [`${client}/dist/firmware-release.js`, ...args], { env });
