import type { Clock } from "@devmesh/service-kit/clock";
import type { Background } from "../background.ts";
import type { DeviceOperation, DeviceStore } from "../store/device-store.ts";
import type { DeviceCreation } from "./device-creation.ts";
import type { DeviceDeletion } from "./device-deletion.ts";
import { newLease } from "./lease.ts";
import type { TokenRotation } from "./token-rotation.ts";

const sweepEveryMs = 5_000;
const sweepTimeoutMs = 10_000;

/** Where pending operations are found, and how each kind is finished. */
export interface RecoveryOptions {
  readonly store: Pick<DeviceStore, "exclusive" | "listOperations" | "replaceOperation">;
  readonly background: Background;
  readonly clock: Clock;
  readonly creation: Pick<DeviceCreation, "undo">;
  readonly deletion: Pick<DeviceDeletion, "finish">;
  readonly rotation: Pick<TokenRotation, "finish">;
}

/**
 * Takes over operations that a crash left: at the start all of them if this process alone uses the store, otherwise
 * and from then on those whose lease has expired. Returns at once.
 */
export function startRecovery(options: RecoveryOptions): void {
  const { store, creation, deletion, rotation, background, clock } = options;

  async function takeOver({ id, operation }: DeviceOperation, signal: AbortSignal): Promise<void> {
    const leased = { ...operation, ...newLease(clock) };
    if (!(await store.replaceOperation(id, operation.token, leased, signal))) return;
    background.run("an operation left by a crash", () => {
      switch (leased.kind) {
        case "creating":
          return creation.undo(id, leased);
        case "deleting":
          return deletion.finish(id, leased);
        case "rotating":
          return rotation.finish(id, leased);
      }
    });
  }

  async function sweep(isAbandoned: (pending: DeviceOperation) => boolean): Promise<void> {
    await background.retry("looking for abandoned operations", sweepTimeoutMs, async ({ signal }) => {
      const pending = await store.listOperations(signal);
      await Promise.all(pending.filter(isAbandoned).map((one) => takeOver(one, signal)));
    });
  }

  const hasExpired = ({ operation }: DeviceOperation) => operation.claimed_until < clock.now().getTime();

  background.run("looking for abandoned operations", async () => {
    // Calls are served only after the start: none of these operations is this process's own yet.
    await sweep(store.exclusive ? () => true : hasExpired);
    for (;;) {
      await clock.sleep(sweepEveryMs, background.signal);
      await sweep(hasExpired);
    }
  });
}
