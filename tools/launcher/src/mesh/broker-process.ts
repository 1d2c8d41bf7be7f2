import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ChildRegistry } from "../process/child-registry.ts";
import { endByCommandLine } from "../process/command-line.ts";
import { type RunningProcess, StartFailure } from "../process/running-process.ts";
import type { DataFolder } from "./data-folder.ts";
import type { PartLog } from "./service-log.ts";

/** Longest wait, in milliseconds, until nats-server listens; a large JetStream folder takes a while to be read. */
const LISTEN_MS = 60_000;

/** An address to wait for. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Ends a nats-server that a launcher of this data folder left behind; recognised by its pid file and its command
 * line.
 */
export async function endLeftoverBroker(folder: DataFolder): Promise<void> {
  const text = await readFile(folder.brokerPid, "utf8").catch(() => "");
  const pid = Number.parseInt(text, 10);
  await endByCommandLine(pid, ["nats-server", folder.brokerConfig], 10_000);
}

/**
 * Starts nats-server with the configuration of the data folder and resolves when it listens on all the addresses.
 * Rejects with a {@link StartFailure} otherwise, and nothing of it runs then. A watcher ends it when this process
 * dies.
 */
export async function startBroker(
  binary: string,
  folder: DataFolder,
  addresses: readonly Address[],
  log: PartLog,
  children: ChildRegistry,
  signal: AbortSignal,
): Promise<RunningProcess> {
  signal.throwIfAborted();
  const child = children.spawn(binary, ["--config", folder.brokerConfig, "--pid", folder.brokerPid], {
    cwd: folder.path,
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
    const reason = ended.signal.aborted ? (log.lastComplaint() ?? (await child.ended)) : "it does not listen";
    throw new StartFailure(`could not start: ${reason}`, { cause });
  }
}

/** Waits until something accepts connections on each address; rejects after `withinMs` or when `signal` fires. */
async function awaitListening(
  addresses: readonly Address[],
  withinMs: number,
  signal: AbortSignal,
): Promise<void> {
  const bound = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  for (const address of addresses) {
    while (!(await accepts(address))) await sleep(25, undefined, { signal: bound });
  }
}

/**
 * Waits until something accepts connections on one of the addresses; rejects after `withinMs` or when `signal` fires.
 */
export async function awaitAnyListening(
  addresses: readonly Address[],
  withinMs: number,
  signal: AbortSignal,
): Promise<void> {
  const found = new AbortController();
  const either = AbortSignal.any([signal, found.signal]);
  await Promise.any(addresses.map((address) => awaitListening([address], withinMs, either)));
  found.abort();
}

function accepts({ host, port }: Address): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => settle(true));
    socket.once("error", () => settle(false));
  });
}
