import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Child, startChild } from "./child.ts";

const folder = join(import.meta.dirname, "peers");

/** Runs a module of `bench/peers` in production, with its log in the file of a descriptor. */
export function startPeer(name: string, env: NodeJS.ProcessEnv, log: number): Child {
  return startChild(import.meta.resolve(`./peers/${name}.ts`), { NODE_ENV: "production", ...env }, log);
}

/** Runs `npm ci` in `bench/peers` unless it holds what its lock file names: the root installs no peers. */
export async function installPeers(): Promise<void> {
  if (await isInstalled()) return;
  console.error("Installing the peers (npm ci in bench/peers, once).");
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const npm = spawn("npm", args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const [code] = await once(npm, "exit");
  if (code !== 0) throw new Error("the peers could not be installed");
}

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly optional?: boolean }>>;
}

async function isInstalled(): Promise<boolean> {
  const read = async (path: string): Promise<LockFile> =>
    JSON.parse(await readFile(join(folder, path), "utf8"));
  try {
    const { packages: installed } = await read("node_modules/.package-lock.json");
    const { packages: locked } = await read("package-lock.json");
    return Object.entries(locked).every(
      ([path, { version, optional }]) => path === "" || optional || installed[path]?.version === version,
    );
  } catch {
    return false;
  }
}
