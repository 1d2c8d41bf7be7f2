import type { Clock } from "@devmesh/service-kit/clock";
import type { Background } from "../background.ts";
import type { DeviceCreation } from "../registry/device-creation.ts";
import type { TokenRotation } from "../registry/token-rotation.ts";
import type { DeviceStore, MarkedDevice } from "../store/device-store.ts";
import type { DeviceDeletion } from "./device-deletion.ts";
import { newClaim } from "./lease.ts";

/** What taking up leftovers needs: how each kind of work is ended. */
export interface LeftoverDeps {
  readonly store: DeviceStore;
  readonly creation: Pick<DeviceCreation, "undo">;
  readonly deletion: Pick<DeviceDeletion, "finish">;
  readonly rotation: Pick<TokenRotation, "finish">;
  readonly background: Background;
  readonly clock: Clock;
}

const sweepEveryMs = 5_000;
const sweepTimeoutMs = 10_000;

/**
 * Takes up what a crash left half-done: at the start every mark of a store that is this process's alone, else and from
 * then on those whose claim has run out. Resolves at once; the work goes on in the background.
 */
export function takeUpLeftovers(deps: LeftoverDeps): void {
  const { store, creation, deletion, rotation, background, clock } = deps;

  async function takeUp({ id, mark }: MarkedDevice, signal: AbortSignal): Promise<void> {
    const claimed = { ...mark, ...newClaim(clock) };
    if (!(await store.replaceMark(id, mark.token, claimed, signal))) return;
    background.run("work left over by a crash", () => {
      switch (claimed.kind) {
        case "creating":
          return creation.undo(id, claimed);
        case "deleting":
          return deletion.finish(id, claimed);
        case "rotating":
          return rotation.finish(id, claimed);
      }
    });
  }

  async function sweep(isLeftOver: (marked: MarkedDevice) => boolean): Promise<void> {
    await background.retry("looking for work left over", sweepTimeoutMs, async ({ signal }) => {
      const marked = await store.listMarked(signal);
      await Promise.all(marked.filter(isLeftOver).map((one) => takeUp(one, signal)));
    });
  }

  const hasRunOut = ({ mark }: MarkedDevice) => mark.claimed_until < clock.now().getTime();

  background.run("looking for work left over", async () => {
    // Calls are served only after the start, so no mark of an exclusive store can be this process's own yet.
    await sweep(store.exclusive ? () => true : hasRunOut);
    for (;;) {
      await clock.sleep(sweepEveryMs, background.signal);
      await sweep(hasRunOut);
    }
  });
}
