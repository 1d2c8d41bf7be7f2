import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { totalmem } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { ChildRegistry } from "../process/child-registry.ts";
import { endByCommandLine } from "../process/command-line.ts";
import { StartFailure } from "../process/errors.ts";
import type { RunningProcess } from "../process/supervision.ts";
import type { DataFolder } from "./data-folder.ts";
import type { PartLog } from "./service-log.ts";

/** Longest wait, in milliseconds, until nats-server listens: it reads a large JetStream folder first. */
const LISTEN_MS = 60_000;

/** An address to wait for. */
export interface BrokerAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Ends a leftover nats-server of this data folder, recognised by its pid file and command line. Returns whether there
 * was one.
 */
export async function endLeftoverBroker(folder: DataFolder): Promise<boolean> {
  const text = await readFile(folder.brokerPid, "utf8").catch(() => "");
  const pid = Number.parseInt(text, 10);
  return await endByCommandLine(pid, ["nats-server", folder.brokerConfig], 10_000);
}

/**
 * Starts nats-server with the configuration of the data folder and resolves when it listens on all addresses. Rejects
 * with a {@link StartFailure} otherwise; nothing of it runs then. A guard ends it when this process dies.
 */
export async function startBroker(
  binary: string,
  env: NodeJS.ProcessEnv,
  folder: DataFolder,
  addresses: readonly BrokerAddress[],
  log: PartLog,
  children: ChildRegistry,
  signal: AbortSignal,
): Promise<RunningProcess> {
  signal.throwIfAborted();
  const child = children.spawn(binary, ["--config", folder.brokerConfig, "--pid", folder.brokerPid], {
    cwd: folder.path,
    env: { ...env, GOMEMLIMIT: env.GOMEMLIMIT || String(memoryLimit()) },
    stdio: ["ignore", "ignore", "pipe"],
    guarded: true,
  });
  if (child.process.stderr) log.follow(child.process.stderr);
  const ended = new AbortController();
  void child.ended.then(() => ended.abort());
  try {
    await awaitListening(addresses, LISTEN_MS, AbortSignal.any([signal, ended.signal]));
    return child;
  } catch (cause) {
    await child.end(5_000);
    const reason = ended.signal.aborted ? (log.lastProblem() ?? (await child.ended)) : "it does not listen";
    throw new StartFailure(`could not start: ${reason}`, { cause });
  }
}

/** Half of the memory of this machine, or of this container: Go then collects garbage rather than take more. */
function memoryLimit(): number {
  return Math.floor(Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY) / 2);
}

/** Waits until every address accepts connections; rejects after `withinMs` or when `signal` fires. */
async function awaitListening(
  addresses: readonly BrokerAddress[],
  withinMs: number,
  signal: AbortSignal,
): Promise<void> {
  const bound = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  for (const address of addresses) {
    while (!(await accepts(address))) await sleep(25, undefined, { signal: bound });
  }
}

/** Waits until one of the addresses accepts connections; rejects after `withinMs` or when `signal` fires. */
export async function awaitAnyListening(
  addresses: readonly BrokerAddress[],
  withinMs: number,
  signal: AbortSignal,
): Promise<void> {
  const found = new AbortController();
  const either = AbortSignal.any([signal, found.signal]);
  await Promise.any(addresses.map((address) => awaitListening([address], withinMs, either)));
  found.abort();
}

/** Whether something accepts TCP connections there now. */
export async function accepts({ host, port }: BrokerAddress): Promise<boolean> {
  const socket = connect({ host, port });
  const connected = once(socket, "connect").then(
    () => true,
    () => false,
  );
  return await connected.finally(() => socket.destroy());
}
