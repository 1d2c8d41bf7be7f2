import { execFile, spawn } from "node:child_process";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "@devmesh/launcher/nats-server/binary-cache";
import { executablesOnPath, isExecutable } from "@devmesh/launcher/nats-server/path-search";
import { z } from "zod";
import type { KubernetesObject } from "./manifest.ts";

/** The package kubernetes-validate, with schemas up to this version. */
const PACKAGE_VERSION = "1.37.0";

/** Longest time of the installation, in milliseconds. */
const INSTALL_MS = 5 * 60_000;

const program = join(import.meta.dirname, "validate_objects.py");
const Problems = z.array(z.string());

/** Checks objects against the schemas of a version of Kubernetes, such as `1.37.0`; a sentence for each problem. */
export type SchemaCheck = (
  objects: readonly KubernetesObject[],
  version: string,
) => Promise<readonly string[]>;

/**
 * The schemas in the package kubernetes-validate, installed once into the cache of nats-server. Null without Python;
 * throws when the installation fails.
 */
export async function findKubernetesSchemas(): Promise<SchemaCheck | null> {
  const [python] = await executablesOnPath("python3", process.env.PATH);
  if (python === undefined) return null;
  const environment = join(cacheFolder(process.env), `kubernetes-validate-${PACKAGE_VERSION}`);
  const interpreter = join(environment, "bin", "python");
  if (!(await isExecutable(interpreter))) await install(python, environment);
  return async (objects, version) => Problems.parse(JSON.parse(await check(interpreter, version, objects)));
}

/** Renamed once complete, so that a crash leaves nothing that looks whole. */
async function install(python: string, environment: string): Promise<void> {
  const unfinished = `${environment}.${process.pid}.part`;
  const run = promisify(execFile);
  try {
    await mkdir(join(environment, ".."), { recursive: true });
    await run(python, ["-m", "venv", unfinished], { timeout: INSTALL_MS });
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    await run(join(unfinished, "bin", "python"), [...pip, `kubernetes-validate==${PACKAGE_VERSION}`], {
      timeout: INSTALL_MS,
    });
    await rename(unfinished, environment).catch(async (error: unknown) => {
      // Another test run was quicker.
      if (!(await isExecutable(join(environment, "bin", "python")))) throw error;
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

function check(interpreter: string, version: string, objects: readonly KubernetesObject[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(interpreter, [program, version], { stdio: ["pipe", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0 ? resolve(output) : reject(new Error(`${program} ended with code ${code}`)),
    );
    child.stdin.end(JSON.stringify(objects));
  });
}
