import type { keys } from "@devmesh/contracts/keys";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Client } from "@devmesh/service-kit/implementation";
import type { Background } from "../background.ts";
import { newClaim } from "../deletion/lease.ts";
import type { RotatingMark } from "../deletion/pending-operation.ts";
import { type ClosingDeps, closeAgainAfterMs, closeConnections } from "../presence/device-connections.ts";
import type { DeviceStore } from "../store/device-store.ts";

/** What rotating a token needs. */
export interface RotationDeps extends ClosingDeps {
  readonly store: DeviceStore;
  readonly keys: Pick<Client<typeof keys>, "rotateToken">;
  readonly background: Background;
  readonly clock: Clock;
}

/** Milliseconds for one attempt to close a device's connections. */
const closeTimeoutMs = 15_000;

/** Replacing the MQTT password of devices. */
export interface TokenRotation {
  /** The new token, once the old one is dead and its connections are closed; null when there is no such device. */
  begin(id: string, call: CallContext): Promise<{ readonly token: string } | null>;
  /**
   * Closes the connections that the device has now, again after a while those of them that came through late, and
   * clears the mark; the caller must have claimed it.
   */
  finish(id: string, mark: RotatingMark): Promise<void>;
}

/**
 * The mark is set before the token changes: a process that dies after the change left connections open that the old
 * token made, and whoever finds the mark closes them. At worst a device is made to log in once more.
 */
export function createTokenRotation(deps: RotationDeps): TokenRotation {
  const { store, keys, background, clock } = deps;

  /**
   * Spares connections that the broker accepted after `changedMs` (monotonic): their logins were checked against the
   * new token. It compares durations, so the broker's clock may differ from ours; while the time is not known, all
   * are closed.
   */
  const close = (id: string, changedMs: number | undefined, call: CallContext) =>
    closeConnections(deps, id, call, changedMs === undefined ? 0 : clock.monotonicMs() - changedMs);

  const closeInBackground = (id: string, changedMs?: number) =>
    background.retry("closing the connections of a device", closeTimeoutMs, (call) =>
      close(id, changedMs, call),
    );

  async function closeAgainLater(id: string, mark: RotatingMark, changedMs?: number): Promise<void> {
    await clock.sleep(closeAgainAfterMs, background.signal);
    await closeInBackground(id, changedMs);
    await background.retry("clearing a mark", closeTimeoutMs, (call) =>
      store.replaceMark(id, mark.token, null, call.signal),
    );
  }

  async function finish(id: string, mark: RotatingMark, changedMs?: number): Promise<void> {
    await closeInBackground(id, changedMs);
    await closeAgainLater(id, mark, changedMs);
  }

  return {
    async begin(id, call) {
      const mark: RotatingMark = { kind: "rotating", ...newClaim(clock) };
      if (!(await store.mark(id, [null, "rotating"], mark, call.signal))) return null;
      let changedMs: number | undefined;
      let rest = finish;
      try {
        const { token } = await keys.rotateToken({ device_id: id }, call);
        changedMs = clock.monotonicMs();
        try {
          await close(id, changedMs, call);
          rest = closeAgainLater;
        } catch {
          // The token is new and must reach the caller; the background goes on closing until it succeeds.
        }
        return { token };
      } finally {
        background.run("the end of a token's rotation", () => rest(id, mark, changedMs));
      }
    },
    finish,
  };
}
