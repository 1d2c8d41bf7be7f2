import { execFile } from "node:child_process";
import { cp, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { repository } from "@devmesh/launcher/mesh/service-process";
import { copyBuildContext } from "./build-context.ts";
import { assignment, type Instruction, parseDockerfile, withVariables } from "./dockerfile.ts";

/** Longest time of a step, in milliseconds. */
const STEP_MS = 5 * 60_000;

/** A stage while it is built. */
interface StageState {
  /** Folder with the content of `/`. */
  readonly root: string;
  readonly base: string;
  readonly env: Record<string, string>;
  readonly labels: Record<string, string>;
  readonly args: Record<string, string>;
  workdir: string;
  user: string;
  command: string[];
  healthcheck: string[];
  readonly exposedPorts: number[];
}

/** The files that a Dockerfile adds to its base image, and how a container starts. */
export type Image = Readonly<StageState>;

/**
 * Executes the RUN and COPY instructions of the Dockerfile in folders below `folder`, one a stage. The base image is
 * this machine: Node, npm and a shell. Throws with the output of a failed step.
 */
export async function buildImage(service: string, folder: string): Promise<Image> {
  const dockerfile = parseDockerfile(await readFile(join(repository, "Dockerfile"), "utf8"));
  const context = join(folder, "context");
  await copyBuildContext(repository, context);
  const stages = new Map<string, StageState>();
  const state = (name: string) => {
    const known = stages.get(name);
    if (known === undefined) throw new Error(`there is no stage ${name}`);
    return known;
  };
  let last: Image | undefined;
  for (const [at, { name, base, instructions }] of dockerfile.stages.entries()) {
    const root = join(folder, name ?? `stage-${at}`);
    await mkdir(root, { recursive: true });
    const stage: StageState = {
      root,
      base,
      env: {},
      labels: {},
      args: {},
      workdir: "/",
      user: "0",
      command: [],
      healthcheck: [],
      exposedPorts: [],
    };
    for (const instruction of instructions) {
      await take(instruction, stage, service, (from) => (from === null ? context : state(from).root));
    }
    if (name !== null) stages.set(name, stage);
    last = stage;
  }
  if (last === undefined) throw new Error("the Dockerfile has no stage");
  return last;
}

async function take(
  { name, rest }: Instruction,
  stage: StageState,
  service: string,
  rootOf: (stage: string | null) => string,
): Promise<void> {
  switch (name) {
    case "ARG": {
      const [argument, fallback] = assignment(rest);
      stage.args[argument] = argument === "SERVICE" ? service : fallback;
      return;
    }
    case "ENV":
    case "LABEL":
      for (const word of rest.split(/\s+/)) {
        const [variable, value] = assignment(word);
        const into = name === "ENV" ? stage.env : stage.labels;
        into[variable] = withVariables(value, { ...stage.args, ...stage.env });
      }
      return;
    case "WORKDIR":
      stage.workdir = rest;
      await mkdir(join(stage.root, rest), { recursive: true });
      return;
    case "COPY":
      return await copy(rest, stage, rootOf);
    case "RUN":
      return await run(rest, stage);
    case "USER":
      stage.user = rest;
      return;
    case "EXPOSE":
      stage.exposedPorts.push(Number(rest));
      return;
    case "CMD":
      stage.command = words(rest);
      return;
    case "HEALTHCHECK":
      stage.healthcheck = words(rest.slice(rest.indexOf("CMD") + 3));
      return;
    default:
      throw new Error(`${name} is more than this knows of a Dockerfile`);
  }
}

/** The exec form: a JSON array. */
function words(text: string): string[] {
  const parsed: unknown = JSON.parse(text);
  if (!Array.isArray(parsed)) throw new Error(`${text} is not in exec form`);
  return parsed.map(String);
}

async function copy(
  rest: string,
  stage: StageState,
  rootOf: (stage: string | null) => string,
): Promise<void> {
  const [, from = null, sources = ""] = /^(?:--from=(\S+)\s+)?(.*)$/.exec(rest) ?? [];
  const [source = "", target = ""] = sources.split(/\s+/);
  await cp(join(rootOf(from), source), join(stage.root, stage.workdir, target), {
    recursive: true,
    verbatimSymlinks: true,
  });
}

/** This machine's settings of npm's registry: proxy, certificate authority. */
function wayToRegistry(): NodeJS.ProcessEnv {
  const names =
    /^(NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|(https?|no)_proxy|npm_config_(registry|cafile|proxy|https_proxy))$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => names.test(name)));
}

async function run(command: string, stage: StageState): Promise<void> {
  const global = join(stage.root, "usr", "local");
  const env: NodeJS.ProcessEnv = {
    ...wayToRegistry(),
    HOME: process.env.HOME,
    PATH: `${join(global, "bin")}:${process.env.PATH}`,
    ...stage.env,
    ...stage.args,
    // Global installations go into the image, and packages come from npm's cache.
    npm_config_prefix: global,
    npm_config_prefer_offline: "true",
    npm_config_update_notifier: "false",
    TURBO_TELEMETRY_DISABLED: "1",
  };
  // npm's own cache replaces the builder's.
  const script = command.replace(/^--mount=type=cache,\S+\s+/, "");
  await promisify(execFile)("sh", ["-c", script], {
    cwd: join(stage.root, stage.workdir),
    env,
    timeout: STEP_MS,
    maxBuffer: 16 * 1024 * 1024,
  }).catch((cause: unknown) => {
    const { stderr = "", stdout = "" } = cause as { stderr?: string; stdout?: string };
    throw new Error(`the step ${command} failed:\n${stdout}${stderr}`, { cause });
  });
}
