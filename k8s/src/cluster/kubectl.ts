import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

/** The namespace of the overlays. */
const namespace = "devmesh";

/** A port of this machine that leads into the cluster. */
interface Forward extends AsyncDisposable {
  readonly port: number;
}

/** kubectl in the namespace of the mesh. */
export interface Kubectl {
  /** Runs a command; resolves with the output, throws kubectl's message. `input` is for `-f -`. */
  run(args: readonly string[], input?: string): Promise<string>;
  /** Forwards a free port to a port of a Service; it leads to one pod, and ends with it. */
  forward(service: string, port: number): Promise<Forward>;
}

/** The cluster of a context of the kubeconfig; without one, of the current context. */
export function kubectlOf(context: string | undefined): Kubectl {
  const common = ["--namespace", namespace, ...(context === undefined ? [] : ["--context", context])];
  return {
    async run(args, input = "") {
      const running = promisify(execFile)("kubectl", [...common, ...args], { maxBuffer: 64 * 1024 * 1024 });
      running.child.stdin?.on("error", () => undefined).end(input);
      try {
        return (await running).stdout.trim();
      } catch (cause) {
        throw new Error(reasonOf(cause), { cause });
      }
    },
    async forward(service, port) {
      const args = [...common, "port-forward", `service/${service}`, `:${port}`];
      const child = spawn("kubectl", args, { stdio: ["ignore", "pipe", "inherit"] });
      const local = await forwardedPort(child).catch((cause) => {
        child.kill();
        throw new Error(`kubectl could not forward a port to ${service}`, { cause });
      });
      return {
        port: local,
        async [Symbol.asyncDispose]() {
          child.kill();
        },
      };
    },
  };
}

/** What kubectl printed about its failure. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ("code" in error && error.code === "ENOENT") return "kubectl is not on the PATH";
  return "stderr" in error && error.stderr !== "" ? String(error.stderr).trim() : error.message;
}

/** The port in kubectl's line `Forwarding from 127.0.0.1:PORT -> …`. */
async function forwardedPort({ stdout }: ChildProcess): Promise<number> {
  if (stdout !== null)
    for await (const line of createInterface(stdout)) {
      const [, port] = /^Forwarding from 127\.0\.0\.1:(\d+)/.exec(line) ?? [];
      if (port !== undefined) {
        // Unread lines about connections would block kubectl.
        stdout.resume();
        return Number(port);
      }
    }
  throw new Error("it ended without a port");
}
