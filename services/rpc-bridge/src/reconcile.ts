import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { DevicesClient } from "./devices-client.ts";
import { withRetries } from "./retry.ts";
import type { DeltaPublisher } from "./shadow/shadow-delta.ts";

interface ReconciliationOptions {
  readonly devices: Pick<DevicesClient, "selectDevices">;
  readonly deltas: Pick<DeltaPublisher, "refresh">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends all attempts. */
  readonly signal: AbortSignal;
}

/**
 * Delay of the second refresh, in milliseconds: a device that reconnects before it counts as offline causes no event
 * `online`.
 */
const repeatAfterMs = 5_000;

/** How long one page of devices may take, in milliseconds. */
const pageTimeoutMs = 10_000;
const pageSize = 1_000;

/**
 * Returns a function that refreshes the deltas of all connected devices, and once more after a while: the bridge may
 * have missed changes. Other devices get theirs when they connect. A call during a run causes another run.
 */
export function createReconciliation(options: ReconciliationOptions): () => void {
  const { devices, deltas, clock, log, signal } = options;
  let wanted = false;
  let running = false;

  async function listPage(after: string | null) {
    using call = createCallContext({ timeoutMs: pageTimeoutMs, signal, clock });
    const where = { online: true };
    return await devices.selectDevices(
      { where, limit: pageSize, ...(after === null ? {} : { after }) },
      call,
    );
  }

  async function refreshConnected(): Promise<void> {
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof listPage>> = await withRetries(
        () => listPage(after),
        clock,
        signal,
      );
      for (const id of page.items) deltas.refresh(id);
      after = page.next;
    } while (after !== null);
  }

  async function run(): Promise<void> {
    running = true;
    while (wanted && !signal.aborted) {
      wanted = false;
      try {
        await refreshConnected();
        await clock.sleep(repeatAfterMs, signal);
        await refreshConnected();
      } catch (error) {
        if (!signal.aborted) log.error({ err: error }, "missed changes of shadows could not be published");
      }
    }
    running = false;
  }

  return () => {
    wanted = true;
    if (!running) void run();
  };
}
