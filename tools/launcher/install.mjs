import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Runs `npm ci` when `node_modules` does not match package-lock.json; a second process waits for the first. `lean`:
 * without what only tests and checks need, which is two thirds of all packages. Throws one sentence when it fails. A
 * signal ends npm first, then this process. All of it is printed to stderr: stdout is the program's, such as a file.
 */
export async function ensureInstalled(root, { lean = false } = {}) {
  if (isInstalled(root, lean)) return;
  const lock = await takeInstallLock(join(root, ".install.lock"));
  let npm = null;
  const leave = (signal) => {
    const exit = () => {
      lock.release();
      process.exit(128 + constants.signals[signal]);
    };
    if (!npm) return exit();
    npm.once("exit", exit);
    npm.kill(signal);
  };
  for (const signal of ENDING_SIGNALS) process.on(signal, leave);
  try {
    if (isInstalled(root, lean)) return;
    // `npm ci` begins by deleting what a mesh may be running from.
    const adds = readText(stampFile(root)) === stampOf(root, true);
    console.error(
      adds ? "Installing what tests need (npm, once)." : "Installing dependencies (npm ci, once).",
    );
    npm = spawnNpm(root, { lean, adds });
    // npm goes on when this process is killed: it then holds the lock.
    if (npm.pid !== undefined) lock.handTo(npm.pid);
    await succeeded(npm);
    writeStamp(root, lean);
  } finally {
    for (const signal of ENDING_SIGNALS) process.off(signal, leave);
    lock.release();
  }
}

const ENDING_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

function isInstalled(root, lean) {
  if (!existsSync(join(root, "node_modules"))) return false;
  const stamp = readText(stampFile(root));
  if (stamp === stampOf(root, false) || (lean && stamp === stampOf(root, true))) return true;
  if (!holdsWhatIsLocked(root, lean)) return false;
  writeStamp(root, lean);
  return true;
}

/** Whether npm's record of an installation by hand matches the lock file. */
function holdsWhatIsLocked(root, lean) {
  const installed = packagesOf(join(root, "node_modules", ".package-lock.json"));
  const locked = packagesOf(join(root, "package-lock.json"));
  if (!installed || !locked) return false;
  return Object.entries(locked).every(([path, wanted]) => {
    if (!path.startsWith("node_modules/") || (lean && wanted.dev === true)) return true;
    const found = installed[path];
    if (!found) return wanted.optional === true || wanted.devOptional === true;
    return found.version === wanted.version && found.resolved === (wanted.resolved ?? found.resolved);
  });
}

function packagesOf(lockFile) {
  try {
    return JSON.parse(readFileSync(lockFile, "utf8")).packages;
  } catch {
    return null;
  }
}

const stampFile = (root) => join(root, "node_modules", ".devmesh-stamp");

/** An installation depends on the locked packages, the platform, and whether it is lean. */
function stampOf(root, lean) {
  const locked = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  return `${locked} ${process.platform}-${process.arch}${lean ? " lean" : ""}\n`;
}

function writeStamp(root, lean) {
  try {
    writeFileSync(stampFile(root), stampOf(root, lean));
  } catch {
    // A read-only node_modules is checked each time.
  }
}

function spawnNpm(root, { lean, adds }) {
  const args = [
    ...(adds ? ["install", "--no-save"] : ["ci"]),
    "--ignore-scripts",
    // Whatever NODE_ENV says: the platform's Node is an optional package.
    "--include=optional",
    lean ? "--omit=dev" : "--include=dev",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    `--prefix=${root}`,
  ];
  // The npm that runs this process, if any; `npm run -w x` limits it to a workspace by the environment.
  const npm = process.env.npm_execpath;
  const [command, first] = npm?.endsWith("npm-cli.js") ? [process.execPath, [npm]] : ["npm", []];
  const env = { ...process.env };
  for (const name of Object.keys(env)) if (/^npm_config_(include_)?workspace/i.test(name)) delete env[name];
  return spawn(command, [...first, ...args], {
    cwd: root,
    env,
    stdio: ["ignore", process.stderr.fd, "inherit"],
  });
}

function succeeded(npm) {
  return new Promise((resolve, reject) => {
    npm.on("error", () => reject(new Error("npm was not found; it comes with Node: put it on PATH.")));
    npm.on("exit", (code) => {
      if (code === 0) resolve();
      else reject(new Error("The dependencies could not be installed; npm says above why."));
    });
  });
}

/** Takes a lock file that names its holder; one whose holder has died is taken over. */
async function takeInstallLock(path) {
  const since = process.hrtime.bigint();
  let mine = `${process.pid} ${since}`;
  let announced = false;
  for (;;) {
    if (createLock(path, mine)) break;
    const holder = readText(path);
    if (holder !== null && !isAlive(Number.parseInt(holder, 10))) {
      rmSync(path, { force: true });
      if (!createLock(path, mine)) continue;
      // Another process may have replaced our lock by its own: the one that the file names a moment later holds it.
      await sleep(200);
      if (readText(path) === mine) break;
      continue;
    }
    if (!announced) console.error("Waiting for another process that installs the dependencies.");
    announced = true;
    await sleep(250);
  }
  return {
    handTo(pid) {
      const theirs = `${pid} ${since}`;
      const unnamed = `${path}.${process.pid}`;
      writeFileSync(unnamed, theirs);
      renameSync(unnamed, path);
      mine = theirs;
    },
    release() {
      if (readText(path) === mine) rmSync(path, { force: true });
    },
  };
}

/** Creates the lock together with its content: an empty one would seem to have no holder. */
function createLock(path, content) {
  const unnamed = `${path}.${process.pid}`;
  try {
    writeFileSync(unnamed, content);
    linkSync(unnamed, path);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw new Error(`The dependencies cannot be installed here: ${path} cannot be written (${error.code}).`);
  } finally {
    rmSync(unnamed, { force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function readText(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
