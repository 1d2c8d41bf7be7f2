import { join, resolve } from "node:path";
import type { ServiceName } from "@devmesh/contracts/mesh";
import { z } from "zod";
import type { ChildRegistry } from "../process/child-registry.ts";
import { StartFailure } from "../process/errors.ts";
import type { RunningProcess } from "../process/supervision.ts";
import type { PartLog } from "./service-log.ts";

/** Longest wait, in milliseconds, for a service to be ready: the migration of a large store takes minutes. */
const READY_MS = 30 * 60_000;

/** Time, in milliseconds, after which the user is notified that a service still starts. */
const NOTICE_MS = 60_000;

/**
 * Options of Node for a service. A young generation of 4 MB in place of 16 keeps less garbage, some 5 MB a service;
 * what it costs in speed is less than the spread of its measurement (docs/performance.md).
 */
const nodeOptions = ["--disable-warning=ExperimentalWarning", "--max-semi-space-size=4"];

/** What a service sends the supervisor. */
const ServiceMessage = z.discriminatedUnion("type", [
  z.object({ type: z.literal("ready"), ops: z.string().nullable().optional() }),
  z.object({ type: z.literal("failed"), message: z.string() }),
]);

/** A service that is ready. */
export interface ServiceProcess extends RunningProcess {
  /** Address of its `/healthz`, `/readyz` and `/metrics`. */
  readonly ops: string | null;
  /** Sends a message over the channel; it is lost when the process has ended. */
  send(message: object): void;
}

/** How service processes are started. */
export interface ServiceProcessOptions {
  readonly repository: string;
  /** Folder of the services' bundles; null: they run from their sources. */
  readonly bundles: string | null;
  /** Part of the command line, by which a later start of the same mesh recognises a leftover process. */
  readonly dataDir: string;
  readonly children: ChildRegistry;
  /** For the user. */
  log(sentence: string): void;
}

/** Root of the repository. */
export const repository = resolve(import.meta.dirname, "../../..");

/** The path of a service's entry, in a folder of bundles, or below the repository. */
export function serviceEntry(service: ServiceName, bundles: string | null): string {
  return bundles === null
    ? join("services", service, "src", "main.ts")
    : join(bundles, "services", service, "main.js");
}

/**
 * Starts a service and resolves when it is ready. Rejects with a {@link StartFailure} when it fails, ends, is not ready
 * in time or `signal` fires; nothing of it runs then. Its channel makes it end when this process dies.
 */
export async function startService(
  service: ServiceName,
  env: NodeJS.ProcessEnv,
  log: PartLog,
  options: ServiceProcessOptions,
  signal: AbortSignal,
): Promise<ServiceProcess> {
  signal.throwIfAborted();
  const child = options.children.spawn(
    process.execPath,
    [...nodeOptions, serviceEntry(service, options.bundles), `--mesh=${options.dataDir}`],
    { cwd: options.repository, env, stdio: ["ignore", "pipe", "pipe", "ipc"], guarded: false },
  );
  if (child.process.stdout) log.follow(child.process.stdout);
  if (child.process.stderr) log.follow(child.process.stderr);
  // A message to a child that has just ended fails; `ended` reports the end.
  child.process.on("error", () => {});

  const settled = new AbortController();
  try {
    const ops = await new Promise<string | null>((resolve, reject) => {
      const fail = (reason: string) =>
        reject(new StartFailure(`could not start: ${reason.replace(/\.$/, "")}`));
      child.process.on("message", (received) => {
        const message = ServiceMessage.safeParse(received).data;
        if (message?.type === "ready") resolve(message.ops ?? null);
        if (message?.type === "failed") fail(message.message);
      });
      void child.ended.then((how) => fail(log.lastProblem() ?? how));
      const slow = AbortSignal.timeout(NOTICE_MS);
      const late = AbortSignal.timeout(READY_MS);
      const once = { once: true, signal: settled.signal };
      const notice = `${service} still starts; the migration of a large store takes minutes.`;
      slow.addEventListener("abort", () => options.log(notice), once);
      late.addEventListener("abort", () => fail(`it was not ready within ${READY_MS / 1_000} s`), once);
      signal.addEventListener("abort", () => fail("the mesh stops"), once);
    });
    const ended = child.ended.then((how) => [how, log.lastProblem()].filter(Boolean).join(": "));
    log.forgetProblem();
    const send = (message: object) => {
      if (child.process.connected) child.process.send(message, () => {});
    };
    return { pid: child.pid, ended, end: child.end, ops, send };
  } catch (failure) {
    await child.end(5_000);
    throw failure;
  } finally {
    settled.abort();
  }
}
