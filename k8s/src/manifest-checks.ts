import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "@devmesh/launcher/nats-server/binary-cache";
import { executablesOnPath } from "@devmesh/launcher/nats-server/path-search";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { z } from "zod";
import { findGoProgram, kubeScore } from "./go-program.ts";
import type { KubernetesObject } from "./manifest.ts";

/** Checks objects; a line for each problem. */
export type ManifestCheck = (objects: readonly KubernetesObject[]) => Promise<readonly string[]>;

const optionalChecks = ["container-ports-check", "container-seccomp-profile"];

const ignoredChecks = [
  // The tag of an image is never used again for another one.
  "container-image-pull-policy",
  // The root file systems are read-only, and each `emptyDir` has a limit.
  "container-ephemeral-storage-request-and-limit",
  // Spread constraints do the same, and two pods on one node are better than one.
  "deployment-has-host-podantiaffinity",
  // nats-server and MongoDB run as the low users of their images.
  "container-security-context-user-group-id",
];

const Scores = z.array(
  z.object({
    type_meta: z.object({ kind: z.string() }),
    object_meta: z.object({ name: z.string() }),
    checks: z.array(
      z.object({ check: z.object({ id: z.string() }), grade: z.number(), skipped: z.boolean() }),
    ),
  }),
);

const Output = z.object({ stdout: z.string(), stderr: z.string() });

/** kube-score's grade of a check without a finding. */
const ALL_OK = 10;

/** Warnings and errors of kube-score, such as `Deployment/data: pod-probes`; null without Go. */
export async function findKubeScore(): Promise<ManifestCheck | null> {
  const program = await findGoProgram("kube-score", kubeScore);
  if (program === null) return null;
  const checks = ["--enable-optional-test", optionalChecks.join(), "--ignore-test", ignoredChecks.join()];
  return async (objects) => {
    const output = await outputOf(program, ["score", "--output-format", "json", ...checks], objects);
    return Scores.parse(JSON.parse(output)).flatMap(({ type_meta, object_meta, checks }) =>
      checks
        .filter(({ grade, skipped }) => grade < ALL_OK && !skipped)
        .map(({ check }) => `${type_meta.kind}/${object_meta.name}: ${check.id}`),
    );
  };
}

/** The package with the schemas; its version is that of the newest Kubernetes in it. */
const schemaPackage = "kubernetes-validate==1.37.0";

/** Longest time of the installation, in milliseconds. */
const INSTALL_MS = 5 * 60_000;

/**
 * Checks against the schemas of a version of Kubernetes, such as `1.37`; null without Python. They are installed once
 * into the cache of nats-server; throws when that fails.
 */
export async function findKubernetesSchemas(): Promise<((version: string) => ManifestCheck) | null> {
  const [python] = await executablesOnPath("python3", process.env.PATH);
  if (python === undefined) return null;
  const environment = join(cacheFolder(process.env), schemaPackage.replace("==", "-"));
  const interpreter = join(environment, "bin", "python");
  const validate = ["-m", "kubernetes_validate"];
  const isInstalled = await promisify(execFile)(interpreter, [...validate, "--version"]).catch(() => null);
  if (isInstalled === null) {
    await promisify(execFile)(python, ["-m", "venv", environment], { timeout: INSTALL_MS });
    const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", schemaPackage];
    await promisify(execFile)(interpreter, install, { timeout: INSTALL_MS });
  }
  return (version) => async (objects) => {
    const options = ["-k", version, "--strict", "--quiet"];
    const output = await outputOf(interpreter, [...validate, ...options], objects);
    return output.split("\n").filter(Boolean);
  };
}

/** The output of a program for a YAML file; its exit code only says whether it found something. */
async function outputOf(
  program: string,
  args: readonly string[],
  objects: readonly KubernetesObject[],
): Promise<string> {
  await using folder = await tempFolder();
  const file = join(folder.path, "objects.yaml");
  await writeFile(file, objects.map((object) => `${JSON.stringify(object)}\n`).join("---\n"));
  const options = { maxBuffer: 64 * 1024 * 1024 };
  const { stdout, stderr } = await promisify(execFile)(program, [...args, file], options).catch(
    (error: unknown) => Output.parse(error),
  );
  if (stderr !== "") throw new Error(stderr);
  return stdout;
}
