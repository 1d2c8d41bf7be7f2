import { randomUUID } from "node:crypto";
import type { data } from "@devmesh/contracts/data";
import type { jobs } from "@devmesh/contracts/jobs";
import type { keys } from "@devmesh/contracts/keys";
import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { webhooks } from "@devmesh/contracts/webhooks";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import type { Background } from "../background.ts";
import {
  type ClosingOptions,
  closeAgainAfterMs,
  closeConnections,
} from "../connections/close-connections.ts";
import type { DeviceEventPublisher } from "../device-events.ts";
import { type DeletionStep, nextStep, type PendingDeletion } from "../pending-operation.ts";
import type { DeviceStore } from "../store/device-store.ts";
import { keepLease, newLease, renewedLease } from "./lease.ts";

/** Milliseconds for one attempt at a step. */
const stepTimeoutMs = 30_000;

/** Options of the deletion of devices. */
export interface DeviceDeletionOptions extends ClosingOptions {
  readonly store: Pick<DeviceStore, "labelsOf" | "beginOperation" | "replaceOperation" | "remove">;
  readonly keys: Pick<Client<typeof keys>, "revokeDevice" | "forgetDevice">;
  readonly data: Pick<Client<typeof data>, "purgeDevice" | "admitDevice">;
  readonly rpcBridge: Pick<Client<typeof rpcBridge>, "endSessions" | "wipeDevice">;
  readonly jobs: Pick<Client<typeof jobs>, "dropDevice">;
  readonly webhooks: Pick<Client<typeof webhooks>, "purgeDevice">;
  readonly events: Pick<DeviceEventPublisher, "deleted">;
  readonly background: Background;
}

/** Deletes devices. */
export interface DeviceDeletion {
  /**
   * Hides the device for good and ends its access; the clean-up continues in the background. False when there is no
   * such device. If it throws once the operation is stored, the device is gone nevertheless.
   */
  begin(id: string, call: CallContext): Promise<boolean>;
  /** Takes the remaining steps of the operation; the caller holds the lease. */
  finish(id: string, operation: PendingDeletion): Promise<void>;
}

/** Returns the client ids that it found, if it looked for them. */
type Step = (
  id: string,
  operation: PendingDeletion,
  call: CallContext,
) => Promise<readonly string[] | undefined>;

/**
 * Deletion is a sequence of idempotent steps. The stored operation names the next one, so that recovery continues after
 * a crash between any two (ADR 14).
 */
export function createDeviceDeletion(options: DeviceDeletionOptions): DeviceDeletion {
  const { store, keys, data, rpcBridge, jobs, webhooks, events, background, clock } = options;

  const steps: Record<DeletionStep, Step> = {
    async revoke(device_id, { event_id }, call) {
      const { client_ids } = await keys.revokeDevice({ device_id }, call);
      const labels = await store.labelsOf(device_id, call.signal);
      await events.deleted(device_id, labels, event_id, call);
      await closeConnections(options, device_id, call);
      return client_ids;
    },
    // A login under way during the first step may have added a client id and a connection since.
    async close_again(device_id, _operation, call) {
      const { client_ids } = await keys.revokeDevice({ device_id }, call);
      await closeConnections(options, device_id, call);
      return client_ids;
    },
    // No login is under way any more: nothing that waits can reach the old device, and must not reach a new one.
    async drop_work(device_id, _operation, call) {
      await jobs.dropDevice({ device_id }, call);
      return undefined;
    },
    // Records first: wiping may take long, and `data` refuses new ones until it admits the device.
    async wipe(device_id, { client_ids }, call) {
      await data.purgeDevice({ device_id }, call);
      await webhooks.purgeDevice({ device_id }, call);
      await rpcBridge.wipeDevice({ device_id, client_ids: [...client_ids] }, call);
      return undefined;
    },
    async admit(device_id, _operation, call) {
      await data.admitDevice({ device_id }, call);
      return undefined;
    },
    async forget(device_id, _operation, call) {
      await keys.forgetDevice({ device_id }, call);
      return undefined;
    },
    async remove(id, { token }, call) {
      await store.remove(id, token, call.signal);
      return undefined;
    },
  };

  /** Takes the step that the operation names and stores the next one; null when none is left or the lease is lost. */
  async function takeStep(
    id: string,
    operation: PendingDeletion,
    given: CallContext,
  ): Promise<PendingDeletion | null> {
    // The call of a later attempt is one of this service.
    const call = operation.from_webhook ? { ...given, fromWebhook: true as const } : given;
    const lease = keepLease(clock, () =>
      store.replaceOperation(id, operation.token, { ...operation, ...renewedLease(clock) }, call.signal),
    );
    // Released first: a late renewal would overwrite the next step.
    const found = await steps[operation.step](id, operation, call).finally(() => lease.release());
    const step = nextStep[operation.step];
    if (step === null) return null;
    const next = { ...operation, step, client_ids: found ?? operation.client_ids, ...renewedLease(clock) };
    return (await store.replaceOperation(id, operation.token, next, call.signal)) ? next : null;
  }

  async function finish(id: string, operation: PendingDeletion): Promise<void> {
    let current: PendingDeletion | null = operation;
    while (current !== null) {
      const { step, token }: PendingDeletion = current;
      const todo: PendingDeletion = current;
      if (step === "close_again") await clock.sleep(closeAgainAfterMs, background.signal);
      current = await background.retry(`step ${step} of deleting a device`, stepTimeoutMs, async (call) => {
        const renewed = { ...todo, ...renewedLease(clock) };
        return (await store.replaceOperation(id, token, renewed, call.signal))
          ? takeStep(id, renewed, call)
          : null;
      });
    }
  }

  return {
    async begin(id, call) {
      const operation: PendingDeletion = {
        kind: "deleting",
        step: "revoke",
        event_id: randomUUID(),
        client_ids: [],
        ...(call.fromWebhook && { from_webhook: true }),
        ...newLease(clock),
      };
      if (!(await store.beginOperation(id, [null, "rotating"], operation, call.signal))) return false;
      let next: PendingDeletion | null = operation;
      try {
        next = await takeStep(id, operation, call);
      } finally {
        const left = next;
        if (left !== null) background.run("the clean-up of a deleted device", () => finish(id, left));
      }
      return true;
    },
    finish,
  };
}
