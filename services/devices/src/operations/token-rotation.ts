import type { keys } from "@devmesh/contracts/keys";
import type { KeyedQueue } from "@devmesh/service-kit/keyed-queue";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import type { Background } from "../background.ts";
import {
  acceptedBefore,
  type ClosingOptions,
  closeAgainAfterMs,
  closeConnections,
  type IsOld,
} from "../connections/close-connections.ts";
import type { PendingRotation } from "../pending-operation.ts";
import type { DeviceStore } from "../store/device-store.ts";
import { newLease } from "./lease.ts";

/** Milliseconds for one attempt to close a device's connections. */
const closeTimeoutMs = 15_000;

/** Options of the rotation of tokens. */
export interface TokenRotationOptions extends ClosingOptions {
  readonly store: Pick<DeviceStore, "beginOperation" | "replaceOperation">;
  readonly keys: Pick<Client<typeof keys>, "rotateToken">;
  readonly background: Background;
}

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
 * with the old token; at worst a device logs in once more. Readers of tokens queue in `tokens`: a session of the new
 * one that began before the old ones are closed would be closed with them, since sessions are closed by client id.
 */
export function createTokenRotation(options: TokenRotationOptions, tokens: KeyedQueue): TokenRotation {
  const { store, keys, background, clock } = options;

  const closeInBackground = (id: string, isOld?: IsOld) =>
    background.retry("closing the connections of a device", closeTimeoutMs, (call) =>
      closeConnections(options, id, call, isOld),
    );

  async function closeAgainLater(id: string, operation: PendingRotation, isOld?: IsOld): Promise<void> {
    await clock.sleep(closeAgainAfterMs, background.signal);
    await closeInBackground(id, isOld);
    await background.retry("ending a rotation", closeTimeoutMs, (call) =>
      store.replaceOperation(id, operation.token, null, call.signal),
    );
  }

  async function finish(id: string, operation: PendingRotation, isOld?: IsOld): Promise<void> {
    await closeInBackground(id, isOld);
    await closeAgainLater(id, operation, isOld);
  }

  return {
    async begin(id, call) {
      const operation: PendingRotation = { kind: "rotating", ...newLease(clock) };
      if (!(await store.beginOperation(id, [null, "rotating"], operation, call.signal))) return null;
      // Connections accepted after the change used the new token; if it failed half-way, all are closed.
      let isOld: IsOld | undefined;
      let rest = finish;
      try {
        const token = await tokens.run(id, async () => {
          const { token } = await keys.rotateToken({ device_id: id }, call);
          isOld = acceptedBefore(clock.monotonicMs());
          try {
            await closeConnections(options, id, call, isOld);
            rest = closeAgainLater;
          } catch {
            // The new token must reach the caller; closing continues in the background.
          }
          return token;
        });
        return { token };
      } finally {
        background.run("the end of a token's rotation", () => rest(id, operation, isOld));
      }
    },
    finish,
  };
}
