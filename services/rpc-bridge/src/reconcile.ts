import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import type { Logger } from "@devmesh/service-kit/logger";
import type { DevicesClient } from "./devices-client.ts";
import { withRetries } from "./retry.ts";
import type { DeltaPublisher } from "./shadow/shadow-delta.ts";

/** What {@link createMissedChanges} needs. */
export interface MissedChangesOptions {
  readonly devices: Pick<DevicesClient, "listDevices">;
  readonly deltas: Pick<DeltaPublisher, "refresh">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends all attempts. */
  readonly signal: AbortSignal;
}

/** Changes of shadows that nobody told, because nobody was there to hear of them. */
export interface MissedChanges {
  /**
   * Has the deltas of all connected devices brought up to date, and after a while once more; those of the others are
   * when they connect. Returns at once; asked for again while it is at work, it begins once more.
   */
  makeUp(): void;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

/**
 * When to look once more, in milliseconds: nobody tells that a device connected that was told to be online before all
 * of the mesh restarted, and that is back before it was told to be offline.
 */
const onceMoreAfterMs = 5_000;

/** How long one page of devices may take, in milliseconds. */
const pageMs = 10_000;

/** Nothing is under way at first. */
export function createMissedChanges(options: MissedChangesOptions): MissedChanges {
  const { devices, deltas, clock, log, signal } = options;
  let wanted = false;
  let working: Promise<void> | null = null;

  async function listPage(after: string | null) {
    using call = createCallContext({ timeoutMs: pageMs, signal, clock });
    return await devices.listDevices({ online: true, ...(after === null ? {} : { after }) }, call);
  }

  async function refreshConnected(): Promise<void> {
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof listPage>> = await withRetries(
        () => listPage(after),
        clock,
        signal,
      );
      for (const { id } of page.items) deltas.refresh(id);
      after = page.next;
    } while (after !== null);
  }

  async function work(): Promise<void> {
    while (wanted && !signal.aborted) {
      wanted = false;
      try {
        await refreshConnected();
        await clock.sleep(onceMoreAfterMs, signal);
        await refreshConnected();
      } catch (error) {
        if (!signal.aborted) log.error({ err: error }, "changes of shadows that were missed stay untold");
      }
    }
    working = null;
  }

  return {
    makeUp() {
      wanted = true;
      working ??= work();
    },
    async idle() {
      await working;
    },
  };
}
