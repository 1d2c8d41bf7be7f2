import type { keys } from "@devmesh/contracts/keys";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Client } from "@devmesh/service-kit/implementation";
import type { Background } from "./background.ts";
import { newClaim } from "./claim.ts";
import { closeAgainAfterMs, closeConnections, type DeviceConnections } from "./device-connections.ts";
import type { DeviceStore } from "./device-store.ts";
import type { RotatingMark } from "./mark.ts";

/** What rotating a token needs. */
export interface RotationDeps {
  readonly store: DeviceStore;
  readonly keys: Pick<Client<typeof keys>, "rotateToken">;
  readonly connections: DeviceConnections;
  readonly background: Background;
  readonly clock: Clock;
}

/** Milliseconds for one attempt to close a device's connections. */
const closeTimeoutMs = 15_000;

/** Replacing the MQTT password of devices. */
export interface TokenRotation {
  /** The new token, once the old one is dead and its connections are closed; null when there is no such device. */
  begin(id: string, call: CallContext): Promise<{ readonly token: string } | null>;
  /** Closes the device's connections, again after a while, and clears the mark; the caller must have claimed it. */
  finish(id: string, mark: RotatingMark): Promise<void>;
}

/**
 * The mark is set before the token changes: a process that dies after the change left connections open that the old
 * token made, and whoever finds the mark closes them. At worst a device is made to log in once more.
 */
export function createTokenRotation(deps: RotationDeps): TokenRotation {
  const { store, keys, connections, background, clock } = deps;

  const close = (id: string) =>
    background.retry("closing the connections of a device", closeTimeoutMs, (call) =>
      closeConnections(connections, id, call),
    );

  async function closeAgainLater(id: string, mark: RotatingMark): Promise<void> {
    await clock.sleep(closeAgainAfterMs, background.signal);
    await close(id);
    await background.retry("clearing a mark", closeTimeoutMs, (call) =>
      store.replaceMark(id, mark.token, null, call.signal),
    );
  }

  async function finish(id: string, mark: RotatingMark): Promise<void> {
    await close(id);
    await closeAgainLater(id, mark);
  }

  return {
    async begin(id, call) {
      const mark: RotatingMark = { kind: "rotating", ...newClaim(clock) };
      if (!(await store.mark(id, [null, "rotating"], mark, call.signal))) return null;
      let rest = finish;
      try {
        const { token } = await keys.rotateToken({ device_id: id }, call);
        try {
          await closeConnections(connections, id, call);
          rest = closeAgainLater;
        } catch {
          // The token is new and must reach the caller; the background goes on closing until it succeeds.
        }
        return { token };
      } finally {
        background.run("the end of a token's rotation", () => rest(id, mark));
      }
    },
    finish,
  };
}
