import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { repository } from "@devmesh/supervisor/mesh/service-process";

/** A program for containers, with its compose. */
export interface Containers {
  /** Runs a command of it, such as `ps --all`; resolves with the output, throws with the message. */
  run(...args: readonly string[]): Promise<string>;
  /** Runs its compose, with these variables. */
  compose(args: readonly string[], variables: NodeJS.Dict<string>): Promise<string>;
  /** Whether the health check of a container passes. */
  isHealthy(container: string): Promise<boolean>;
}

export const docker: Containers = {
  run: (...args) => output("docker", args),
  compose: (args, variables) => output("docker", ["compose", ...args], variables),
  isHealthy: async (container) =>
    (await output("docker", ["inspect", "--format", "{{.State.Health.Status}}", container])) === "healthy",
};

const podman: Containers = {
  run: (...args) => output("podman", args),
  compose: (args, variables) => output("podman-compose", args, variables),
  // Without systemd podman never runs health checks by itself.
  isHealthy: async (container) =>
    await output("podman", ["healthcheck", "run", container]).then(
      () => true,
      () => false,
    ),
};

/** Docker, else podman, where it runs and has a compose; else null. */
export async function findContainers(): Promise<Containers | null> {
  for (const containers of [docker, podman]) {
    const answers = [containers.run("ps"), containers.compose(["version"], {})];
    if ((await Promise.allSettled(answers)).every(({ status }) => status === "fulfilled")) return containers;
  }
  return null;
}

async function output(
  program: string,
  args: readonly string[],
  variables: NodeJS.Dict<string> = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, {
    cwd: repository,
    // Images of podman have a HEALTHCHECK only in this format.
    env: { ...process.env, BUILDAH_FORMAT: "docker", ...variables },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout.trim();
}
