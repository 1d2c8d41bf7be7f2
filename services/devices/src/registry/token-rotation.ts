import type { CallContext } from "@devmesh/service-kit/context";
import { newLease } from "../deletion/lease.ts";
import type { PendingRotation } from "../deletion/pending-operation.ts";
import type { DevicesOptions } from "../devices-options.ts";
import { closeAgainAfterMs, closeConnections } from "../presence/broker-connections.ts";

/** Milliseconds for one attempt to close a device's connections. */
const closeTimeoutMs = 15_000;

/** Replaces the MQTT password of devices. */
export interface TokenRotation {
  /** The new token, once the old one is invalid and its connections are closed; null when there is no such device. */
  begin(id: string, call: CallContext): Promise<{ readonly token: string } | null>;
  /**
   * Closes the connections that the device has now, once more after {@link closeAgainAfterMs}, and ends the operation;
   * the caller holds the lease.
   */
  finish(id: string, operation: PendingRotation): Promise<void>;
}

/**
 * The operation is stored before the token changes. If the process dies after the change, recovery closes connections
 * with the old token; at worst a device logs in once more.
 */
export function createTokenRotation(options: DevicesOptions): TokenRotation {
  const { store, keys, background, clock } = options;

  /**
   * Keeps connections that the broker accepted after `changedMs` (monotonic): they used the new token. It compares
   * durations because the broker's clock may differ; without `changedMs` all are closed.
   */
  const close = (id: string, changedMs: number | undefined, call: CallContext) =>
    closeConnections(options, id, call, changedMs === undefined ? 0 : clock.monotonicMs() - changedMs);

  const closeInBackground = (id: string, changedMs?: number) =>
    background.retry("closing the connections of a device", closeTimeoutMs, (call) =>
      close(id, changedMs, call),
    );

  async function closeAgainLater(id: string, operation: PendingRotation, changedMs?: number): Promise<void> {
    await clock.sleep(closeAgainAfterMs, background.signal);
    await closeInBackground(id, changedMs);
    await background.retry("ending a rotation", closeTimeoutMs, (call) =>
      store.replaceOperation(id, operation.token, null, call.signal),
    );
  }

  async function finish(id: string, operation: PendingRotation, changedMs?: number): Promise<void> {
    await closeInBackground(id, changedMs);
    await closeAgainLater(id, operation, changedMs);
  }

  return {
    async begin(id, call) {
      const operation: PendingRotation = { kind: "rotating", ...newLease(clock) };
      if (!(await store.beginOperation(id, [null, "rotating"], operation, call.signal))) return null;
      let changedMs: number | undefined;
      let rest = finish;
      try {
        const { token } = await keys.rotateToken({ device_id: id }, call);
        changedMs = clock.monotonicMs();
        try {
          await close(id, changedMs, call);
          rest = closeAgainLater;
        } catch {
          // The new token must reach the caller; closing continues in the background.
        }
        return { token };
      } finally {
        background.run("the end of a token's rotation", () => rest(id, operation, changedMs));
      }
    },
    finish,
  };
}
