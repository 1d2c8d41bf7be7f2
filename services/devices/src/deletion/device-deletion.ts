import { randomUUID } from "node:crypto";
import type { data } from "@devmesh/contracts/data";
import type { keys } from "@devmesh/contracts/keys";
import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Client } from "@devmesh/service-kit/implementation";
import type { Background } from "../background.ts";
import { type ClosingDeps, closeAgainAfterMs, closeConnections } from "../presence/device-connections.ts";
import type { DeviceNotices } from "../registry/device-events.ts";
import type { DeviceStore } from "../store/device-store.ts";
import { holdClaim, newClaim, renewedClaim } from "./lease.ts";
import { type DeletingMark, type DeletionStep, nextStep } from "./pending-operation.ts";

/** What deleting a device needs. */
export interface DeletionDeps extends ClosingDeps {
  readonly store: DeviceStore;
  readonly keys: Pick<Client<typeof keys>, "revokeDevice" | "forgetDevice">;
  readonly data: Pick<Client<typeof data>, "purgeDevice" | "admitDevice">;
  readonly rpcBridge: ClosingDeps["rpcBridge"] & Pick<Client<typeof rpcBridge>, "wipeDevice">;
  readonly notices: DeviceNotices;
  readonly background: Background;
  readonly clock: Clock;
}

/** Milliseconds for one attempt at a step. */
const stepTimeoutMs = 30_000;

/** Deleting devices. */
export interface DeviceDeletion {
  /**
   * Hides the device for good and ends its access; the clean-up goes on in the background. False when there is no
   * such device. When it throws after the marking, the device is gone all the same and the clean-up goes on.
   */
  begin(id: string, call: CallContext): Promise<boolean>;
  /** Does what the mark says is left, step by step; the mark must be claimed by the caller. */
  finish(id: string, mark: DeletingMark): Promise<void>;
}

/** A step returns the client ids that it found, if it looked for them. */
type Step = (id: string, mark: DeletingMark, call: CallContext) => Promise<readonly string[] | undefined>;

/**
 * Deletion is a row of steps, each of which may be done twice. The mark says durably which one is next, so that a
 * crash between any two is made good by whoever takes the mark over (ADR 14).
 */
export function createDeviceDeletion(deps: DeletionDeps): DeviceDeletion {
  const { store, keys, data, rpcBridge, notices, background, clock } = deps;

  const steps: Record<DeletionStep, Step> = {
    async revoke(device_id, { event_id }, call) {
      const { client_ids } = await keys.revokeDevice({ device_id }, call);
      await notices.deleted(device_id, event_id, call);
      await closeConnections(deps, device_id, call);
      return client_ids;
    },
    // A login under way during the first step may have added a client id and a connection since.
    async close_again(device_id, _mark, call) {
      const { client_ids } = await keys.revokeDevice({ device_id }, call);
      await closeConnections(deps, device_id, call);
      return client_ids;
    },
    // First the records: wiping may take long, and `data` refuses what comes until it admits the device.
    async wipe(device_id, { client_ids }, call) {
      await data.purgeDevice({ device_id }, call);
      await rpcBridge.wipeDevice({ device_id, client_ids: [...client_ids] }, call);
      return undefined;
    },
    async purge(device_id, _mark, call) {
      await data.purgeDevice({ device_id }, call);
      return undefined;
    },
    async admit(device_id, _mark, call) {
      await data.admitDevice({ device_id }, call);
      return undefined;
    },
    async forget(device_id, _mark, call) {
      await keys.forgetDevice({ device_id }, call);
      return undefined;
    },
    async remove(id, { token }, call) {
      await store.remove(id, token, call.signal);
      return undefined;
    },
  };

  /** Does the step that the mark names and writes down the next one; null when none is left or the claim is lost. */
  async function takeStep(id: string, mark: DeletingMark, call: CallContext): Promise<DeletingMark | null> {
    const claim = holdClaim(clock, () =>
      store.replaceMark(id, mark.token, { ...mark, ...renewedClaim(clock) }, call.signal),
    );
    // Released first: a renewal behind the next step's mark would take that back.
    const found = await steps[mark.step](id, mark, call).finally(() => claim.release());
    const step = nextStep[mark.step];
    if (step === null) return null;
    const next = { ...mark, step, client_ids: found ?? mark.client_ids, ...renewedClaim(clock) };
    return (await store.replaceMark(id, mark.token, next, call.signal)) ? next : null;
  }

  async function finish(id: string, mark: DeletingMark): Promise<void> {
    let current: DeletingMark | null = mark;
    while (current !== null) {
      const { step, token }: DeletingMark = current;
      const todo: DeletingMark = current;
      if (step === "close_again") await clock.sleep(closeAgainAfterMs, background.signal);
      current = await background.retry(`step ${step} of deleting a device`, stepTimeoutMs, async (call) => {
        const renewed = { ...todo, ...renewedClaim(clock) };
        return (await store.replaceMark(id, token, renewed, call.signal))
          ? takeStep(id, renewed, call)
          : null;
      });
    }
  }

  return {
    async begin(id, call) {
      const mark: DeletingMark = {
        kind: "deleting",
        step: "revoke",
        event_id: randomUUID(),
        client_ids: [],
        ...newClaim(clock),
      };
      if (!(await store.mark(id, [null, "rotating"], mark, call.signal))) return false;
      let next: DeletingMark | null = mark;
      try {
        next = await takeStep(id, mark, call);
      } finally {
        const left = next;
        if (left !== null) background.run("the clean-up of a deleted device", () => finish(id, left));
      }
      return true;
    },
    finish,
  };
}
