import { statfs } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type BackOffLimits, backOff } from "../process/back-off.ts";
import type { RunningProcess } from "../process/running-process.ts";
import type { Supervision } from "../process/supervision.ts";

/** Less room than this, in bytes, is soon used up again. */
const enoughBytes = 16 * 1024 * 1024;
/** How often the room is looked at while there is not enough, in milliseconds. */
const lookEveryMs = 1_000;
/** Where room does not help, as with a disk that is broken, the devices' connections are cut rarely. */
const restarts: BackOffLimits = {
  afterHealthMs: 1_000,
  firstMs: 5_000,
  longestMs: 60_000,
  healthyAfterMs: 120_000,
};

/** What {@link brokerStorage} needs. */
export interface BrokerStorageOptions {
  /** Folder of JetStream's files. */
  readonly folder: string;
  /** The supervision of nats-server; null until it has started. */
  readonly broker: () => Supervision<RunningProcess> | null;
  /** Time that nats-server has to close its files, in milliseconds. */
  readonly graceMs: number;
  readonly say: (sentence: string) => void;
  /** Ends the wait for room. */
  readonly signal: AbortSignal;
}

/**
 * Restarts nats-server after a write error once there is room: until then it stores nothing more in the stream that
 * failed, and restarting earlier would only cut connections. Returns what takes the cause of each write error.
 */
export function brokerStorage(options: BrokerStorageOptions): (cause: string) => void {
  const { folder, broker, graceMs, say, signal } = options;
  const waits = backOff(restarts);
  let mending = false;

  async function mend(cause: string): Promise<void> {
    const failed = broker()?.current() ?? null;
    say(`nats-server could not write (${cause}); it is restarted when there is room in ${folder}.`);
    await sleep(waits.next(performance.now()), undefined, { signal });
    while (!(await hasRoom(folder))) await sleep(lookEveryMs, undefined, { signal });
    const running = broker()?.current() ?? null;
    // Another process than the one that failed has been started already.
    if (failed === null || running === failed) {
      say("There is room: nats-server is restarted.");
      await running?.end(graceMs);
    }
    waits.up(performance.now());
  }

  return (cause) => {
    if (mending || signal.aborted) return;
    mending = true;
    mend(cause)
      .catch(() => undefined)
      .finally(() => {
        mending = false;
      });
  };
}

async function hasRoom(folder: string): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize >= enoughBytes;
  } catch {
    return false;
  }
}
