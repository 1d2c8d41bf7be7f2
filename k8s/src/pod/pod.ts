import { execFile } from "node:child_process";
import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { startProcess } from "@devmesh/testkit/process";
import {
  configMapData,
  containerEnvironment,
  type SecretContents,
  secretData,
} from "../container-environment.ts";
import type { Container, KubernetesObject, PodTemplate, Probe, Workload } from "../manifest.ts";
import type { PodNetwork } from "./pod-network.ts";

/** `PATH` of containers: programs of their image are in `/opt/bin`. */
const containerPath = "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Timeout of a probe, in milliseconds. */
const PROBE_MS = 10_000;

/** The image of a pod. */
export interface PodImage {
  /** Files and folders of this machine by their path in the container. */
  readonly files: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly command: readonly string[];
}

export interface PodOptions {
  readonly network: PodNetwork;
  readonly objects: readonly KubernetesObject[];
  readonly secrets: SecretContents;
  readonly image: PodImage;
  /** A folder for this pod alone. */
  readonly folder: string;
  /** Files below `/var/run/secrets/kubernetes.io/serviceaccount` for pods that get a token. */
  readonly serviceAccount?: Readonly<Record<string, string>>;
  /** Its own name, and those of its Services. */
  readonly names: readonly [string, ...string[]];
}

/**
 * A pod whose only container is a process of this machine, with the network, mounts, user and environment of the
 * manifest.
 */
export interface Pod extends AsyncDisposable {
  readonly address: string;
  readonly pid: number;
  /** All that it has printed. */
  log(): string;
  /** Whether a probe succeeds. */
  passes(probe: "startupProbe" | "readinessProbe" | "livenessProbe"): Promise<boolean>;
  /** Runs a command in the pod's network as root; resolves with its output. */
  execute(command: string, args: readonly string[]): Promise<string>;
  /** Resolves with the exit code; null after a signal. */
  readonly ended: Promise<number | null>;
  /** Sends SIGTERM and resolves as `ended`. */
  stop(): Promise<number | null>;
}

/** Starts the pod of a workload, which is not healthy yet. */
export async function startPod(workload: Workload, options: PodOptions): Promise<Pod> {
  const { network, objects, secrets, image, folder, names, serviceAccount = {} } = options;
  const { template } = workload;
  const [container] = template.spec.containers;
  if (container === undefined) throw new Error(`${workload.name} has no container`);
  const { runAsUser = 0, runAsGroup = 0 } = template.spec.securityContext ?? {};

  const root = join(folder, "root");
  await mkdir(root, { recursive: true });
  const address = await network.join(names);
  const mounts = [
    `${network.hostsFile} /etc/hosts ro`,
    ...Object.entries(image.files).map(([target, source]) => `${source} ${target} ro`),
    ...(template.spec.automountServiceAccountToken === true
      ? [
          `${await filesOf(join(folder, "service-account"), serviceAccount, runAsGroup)} ${serviceAccountFolder} ro`,
        ]
      : []),
    ...(await volumeMounts(template, container, { objects, secrets, folder })),
  ];
  await writeFile(`${root}.mounts`, mounts.map((line) => `${line}\n`).join(""));

  const env = { ...image.env, ...containerEnvironment(container, objects, secrets, names[0]) };
  const command = container.command ?? image.command;
  const script = join(import.meta.dirname, "run-container.sh");
  const place = [String(network.switchPid), address, root, String(runAsUser), String(runAsGroup)];
  const { child, output, ended, end } = startProcess(
    "unshare",
    ["--net", "--mount", "sh", script, ...place, image.workdir, containerPath, ...command],
    // Container runtimes set the host name.
    { env: { PATH: containerPath, HOSTNAME: names[0], ...env } },
  );
  const { pid } = child;
  if (pid === undefined) throw new Error("unshare could not be run");
  const execute = (program: string, args: readonly string[]) => inNetworkOf(pid, program, args);
  return {
    address,
    pid,
    log: output,
    ended,
    passes: async (name) => await passes(container[name], container, execute),
    execute,
    stop: end,
    async [Symbol.asyncDispose]() {
      await end("SIGKILL");
    },
  };
}

/** Without the mounts: probes come from outside the container. */
async function inNetworkOf(pid: number, command: string, args: readonly string[]): Promise<string> {
  return await new Promise((resolve, reject) => {
    execFile(
      "nsenter",
      ["--target", String(pid), "--net", command, ...args],
      { timeout: PROBE_MS },
      (error, stdout, stderr) =>
        error ? reject(new Error(`${command}: ${stderr}`, { cause: error })) : resolve(stdout),
    );
  });
}

async function passes(
  probe: Probe | undefined,
  container: Container,
  execute: Pod["execute"],
): Promise<boolean> {
  const numberOf = (port: string | number) =>
    typeof port === "number" ? port : container.ports.find(({ name }) => name === port)?.containerPort;
  const [command, ...args] =
    probe?.exec?.command ??
    (probe?.httpGet
      ? [
          "wget",
          "-q",
          "-O",
          "/dev/null",
          `http://127.0.0.1:${numberOf(probe.httpGet.port)}${probe.httpGet.path}`,
        ]
      : []);
  if (command === undefined) throw new Error("the container is not asked that");
  return await execute(command, args).then(
    () => true,
    () => false,
  );
}

interface VolumeSources {
  readonly objects: readonly KubernetesObject[];
  readonly secrets: SecretContents;
  readonly folder: string;
}

/** Lines of SOURCE TARGET ro|rw, with a folder of this machine for each volume. */
async function volumeMounts(
  template: PodTemplate,
  container: Container,
  sources: VolumeSources,
): Promise<string[]> {
  const { runAsUser = 0, runAsGroup = 0 } = template.spec.securityContext ?? {};
  const lines: string[] = [];
  for (const { name, mountPath, subPath } of container.volumeMounts) {
    const content = contentOf(template, name, sources);
    const source = join(sources.folder, "volumes", name);
    const mounted = subPath === undefined ? source : join(source, subPath);
    await filesOf(source, content ?? {}, runAsGroup);
    if (content === null) {
      await mkdir(mounted, { recursive: true });
      await chown(mounted, runAsUser, runAsGroup);
      await chmod(mounted, 0o770);
    }
    lines.push(`${mounted} ${mountPath} ${content === null ? "rw" : "ro"}`);
  }
  return lines;
}

/** Writes files that a group can read, and returns their folder. */
async function filesOf(
  place: string,
  files: Readonly<Record<string, string>>,
  group: number,
): Promise<string> {
  await mkdir(place, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    const file = join(place, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text, { mode: 0o440 });
    await chown(file, 0, group);
  }
  return place;
}

/** The files of a ConfigMap or Secret; null for a volume that the pod writes. */
function contentOf(
  template: PodTemplate,
  name: string,
  { objects, secrets }: VolumeSources,
): Readonly<Record<string, string>> | null {
  const volume = template.spec.volumes.find((candidate) => candidate.name === name);
  if (volume?.configMap) return picked(configMapData(objects, volume.configMap.name), volume.configMap.items);
  if (volume?.secret) return picked(secretData(secrets, volume.secret.secretName), volume.secret.items);
  return null;
}

function picked(
  data: Readonly<Record<string, string>>,
  items: readonly { readonly key: string; readonly path: string }[] | undefined,
): Readonly<Record<string, string>> {
  if (items === undefined) return data;
  return Object.fromEntries(items.map(({ key, path }) => [path, data[key] ?? ""]));
}
