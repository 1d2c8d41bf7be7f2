import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  configMapData,
  containerEnvironment,
  type SecretContents,
  secretData,
} from "../container-environment.ts";
import type { Container, KubernetesObject, PodTemplate, Probe, Workload } from "../manifest.ts";
import type { PodNetwork } from "./pod-network.ts";

/** Where containers find programs: in `/opt/bin` what their image brings, then where Debian's images look. */
const containerPath = "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Where a pod finds the token of its service account. */
const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Longest that a probe may take, in milliseconds. */
const PROBE_MS = 10_000;

/** What a pod's image brings: files of this machine by their place in the container, and how it starts. */
export interface PodImage {
  /** Files and folders of this machine by their path in the container. */
  readonly files: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly command: readonly string[];
}

/** What a pod is started with. */
export interface PodOptions {
  readonly network: PodNetwork;
  readonly objects: readonly KubernetesObject[];
  readonly secrets: SecretContents;
  readonly image: PodImage;
  /** A folder that the pod may fill; it is the pod's alone. */
  readonly folder: string;
  /** What the kubelet puts below `/var/run/secrets/kubernetes.io/serviceaccount` for pods that get a token. */
  readonly serviceAccount?: Readonly<Record<string, string>>;
  /** Its own, and others by which it is found, such as that of its Service. */
  readonly names: readonly [string, ...string[]];
}

/**
 * A pod whose one container is a process of this machine: in the network, with the mounts, the user and the
 * environment of the manifest.
 */
export interface Pod extends AsyncDisposable {
  readonly address: string;
  readonly pid: number;
  /** All that it has printed. */
  log(): string;
  /** Asks what the kubelet would; whether the answer is the one of health. */
  passes(probe: "startupProbe" | "readinessProbe" | "livenessProbe"): Promise<boolean>;
  /** Runs a command in the pod's network, as root of the machine; resolves with what it prints. */
  execute(command: string, args: readonly string[]): Promise<string>;
  /** Resolves with the exit code when the process has ended by itself; null when a signal ended it. */
  readonly ended: Promise<number | null>;
  /** SIGTERM; resolves with the exit code, null when a signal ended it. */
  stop(): Promise<number | null>;
}

/** Starts the pod of a workload. It is not healthy yet. */
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
  const child = spawn(
    "unshare",
    ["--net", "--mount", "sh", script, ...place, image.workdir, containerPath, ...command],
    // A container runtime names the pod, too.
    { env: { PATH: containerPath, HOSTNAME: names[0], ...env }, stdio: ["ignore", "pipe", "pipe"] },
  );
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
  }
  const ended = once(child, "exit").then(([code]: (number | null)[]) => code ?? null);
  const { pid } = child;
  if (pid === undefined) throw new Error("unshare could not be run");
  const execute = (program: string, args: readonly string[]) => inNetworkOf(pid, program, args);
  return {
    address,
    pid,
    log: () => log,
    ended,
    passes: async (name) => await passes(container[name], container, execute),
    execute,
    async stop() {
      if (!hasEnded(child)) child.kill("SIGTERM");
      return await ended;
    },
    async [Symbol.asyncDispose]() {
      if (!hasEnded(child)) child.kill("SIGKILL");
      await ended;
    },
  };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** In the network alone, not among the mounts: the kubelet's probes come from outside the container. */
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

/** Lines of SOURCE TARGET ro|rw: each volume becomes a folder of this machine. */
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

/** Writes files that a group may read, and answers their folder. */
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

/** The files of a volume that holds a ConfigMap or a Secret; null for one that the pod writes. */
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
