import { join } from "node:path";
import type { ServiceName } from "@devmesh/contracts/mesh";
import { z } from "zod";
import type { ChildRegistry } from "../process/child-registry.ts";
import { type RunningProcess, StartFailure } from "../process/running-process.ts";
import type { PartLog } from "./service-log.ts";

/** Longest wait, in milliseconds, for a service to be ready: the migration of a large store takes minutes. */
const READY_MS = 30 * 60_000;

/** Wait, in milliseconds, after which the user learns that a service still starts. */
const NOTICE_MS = 60_000;

/** What a service tells the launcher over their channel. */
const ServiceMessage = z.discriminatedUnion("type", [
  z.object({ type: z.literal("ready"), ops: z.string().nullable().optional() }),
  z.object({ type: z.literal("failed"), message: z.string() }),
]);

/** A service that is ready. */
export interface ServiceProcess extends RunningProcess {
  /** Address of its `/healthz`, `/readyz` and `/metrics`. */
  readonly ops: string | null;
}

/** Where and how service processes are started. */
export interface ServicePlace {
  readonly repository: string;
  /** Stands in the command line, so that a later start of the same mesh recognises what this one left behind. */
  readonly dataDir: string;
  readonly children: ChildRegistry;
  /** For the user, on standard output. */
  say(sentence: string): void;
}

/** The path of a service's entry below the repository, as it stands in its command line. */
export function serviceEntry(service: ServiceName): string {
  return join("services", service, "src", "main.ts");
}

/**
 * Starts a service and resolves when it says that it is ready. Rejects with a {@link StartFailure} that names the
 * reason, when it fails, ends, stays silent or `signal` fires; nothing of it runs then. It ends by itself when this
 * process dies, as its channel closes.
 */
export async function startService(
  service: ServiceName,
  env: NodeJS.ProcessEnv,
  log: PartLog,
  place: ServicePlace,
  signal: AbortSignal,
): Promise<ServiceProcess> {
  signal.throwIfAborted();
  const child = place.children.spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", serviceEntry(service), `--mesh=${place.dataDir}`],
    { cwd: place.repository, env, stdio: ["ignore", "pipe", "pipe", "ipc"], guarded: false },
  );
  if (child.process.stdout) log.follow(child.process.stdout);
  if (child.process.stderr) log.follow(child.process.stderr);
  // A message to a child that has just ended fails; its end is told by `ended`.
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
      void child.ended.then((how) => fail(log.lastComplaint() ?? how));
      const slow = AbortSignal.timeout(NOTICE_MS);
      const late = AbortSignal.timeout(READY_MS);
      const once = { once: true, signal: settled.signal };
      const notice = `${service} still starts; the migration of a large store takes minutes.`;
      slow.addEventListener("abort", () => place.say(notice), once);
      late.addEventListener("abort", () => fail(`it was not ready within ${READY_MS / 1_000} s`), once);
      signal.addEventListener("abort", () => fail("the mesh stops"), once);
    });
    const ended = child.ended.then((how) => [how, log.lastComplaint()].filter(Boolean).join(": "));
    log.forgetComplaint();
    return { pid: child.pid, ended, end: child.end, ops };
  } catch (failure) {
    await child.end(5_000);
    throw failure;
  } finally {
    settled.abort();
  }
}
