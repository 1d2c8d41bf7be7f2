import { setImmediate as nextTurn } from "node:timers/promises";
import type { Device } from "@devmesh/contracts/model/device";
import { Semaphore } from "@devmesh/service-kit/semaphore";
import type { Presence } from "../presence.ts";
import type { DeviceStore, ListedDevice } from "../store/device-store.ts";
import type { ListOrder } from "../store/list-order.ts";
import type { DividedCondition } from "./device-selection.ts";
import { describeDevice } from "./device-view.ts";

/** Most devices listed at once, and most at first where the documents of all candidates are read. */
const idBatchSize = 1_000;
const firstIdBatchSize = 128;
/** How many times more are listed next, unless one in so many was a candidate whose document is wanted. */
const idBatchGrowth = 4;
/** Documents read at once: few enough that the largest ones still fit into memory easily. */
const documentBatchSize = 50;

/** Walks at one time that read documents to decide, and walks that wait. */
const scans = { running: 2, waiting: 20 } as const;

export interface DeviceWalkOptions {
  readonly store: Pick<DeviceStore, "list" | "findAll">;
  readonly presence: Presence;
}

/** The call that a walk is for. */
interface WalkingCall {
  readonly signal: AbortSignal;
  readonly fail: (reason: "too_many_scans") => never;
}

/** Where a walk begins, and its direction. */
interface WalkOrder extends ListOrder {
  readonly after?: string | undefined;
  /** Ends the call where `after` is no position. */
  readonly refuse?: () => never;
}

/** A device on a walk. */
export interface FoundDevice {
  readonly listed: ListedDevice;
  readonly device: Device;
}

/**
 * Walks devices that meet a condition. Presence and problems are not in the store, so the list is walked without
 * documents, which is cheap, and only documents that may be wanted are read.
 */
export type DeviceWalk = ReturnType<typeof createDeviceWalk>;

export function createDeviceWalk({ store, presence }: DeviceWalkOptions) {
  const permits = new Semaphore({ permits: scans.running, queues: [scans.waiting] });

  /** Devices that what is in memory and in the index of the store lets meet the condition. */
  async function* candidates(
    { stored, isCandidate, isMet }: DividedCondition,
    { after, refuse, ...order }: WalkOrder,
    { signal }: WalkingCall,
    wanted = idBatchSize,
  ): AsyncGenerator<ListedDevice[], void, undefined> {
    let cursor = after;
    let size = wanted;
    for (;;) {
      const from = cursor === undefined ? {} : { after: cursor };
      const limit = Math.min(size, idBatchSize);
      const listed = await store.list({ ...order, limit, condition: stored, ...from }, signal);
      if (listed === null) return refuse?.();
      const found = listed.filter(isCandidate);
      yield found;
      if (listed.length < limit) return;
      if (isMet !== null || found.length * idBatchGrowth < limit) size *= idBatchGrowth;
      cursor = listed.at(-1)?.cursor;
      // The store may answer synchronously: other calls get their turn.
      await nextTurn();
    }
  }

  /** The documents of a portion in its order, without devices deleted meanwhile. */
  async function read(portion: readonly ListedDevice[], signal: AbortSignal): Promise<FoundDevice[]> {
    const found = await store.findAll(
      portion.map(({ id }) => id),
      signal,
    );
    const byId = new Map(found.map((device) => [device.id, device]));
    return portion.flatMap((listed) => {
      const stored = byId.get(listed.id);
      return stored === undefined ? [] : [{ listed, device: describeDevice(stored, presence) }];
    });
  }

  /** Devices that meet the condition, with their documents. `wanted`: how many more at least. */
  async function* documents(
    selection: DividedCondition,
    order: WalkOrder,
    call: WalkingCall,
    wanted: () => number,
  ): AsyncGenerator<FoundDevice[], void, undefined> {
    const { isMet } = selection;
    using permit = isMet === null ? null : await permits.acquire();
    if (isMet !== null && permit === null) return call.fail("too_many_scans");
    const first = isMet === null ? Math.min(wanted(), firstIdBatchSize) : wanted();
    for await (const listed of candidates(selection, order, call, first)) {
      for (let from = 0, width = 0; from < listed.length; from += width) {
        width = isMet === null ? Math.min(documentBatchSize, wanted()) : documentBatchSize;
        const found = await read(listed.slice(from, from + width), call.signal);
        yield isMet === null ? found : found.filter(({ device }) => isMet(device));
        await nextTurn();
      }
    }
  }

  return {
    documents,

    /** Devices that meet the condition; documents are read where only they decide. */
    async *devices(
      selection: DividedCondition,
      order: WalkOrder,
      call: WalkingCall,
    ): AsyncGenerator<ListedDevice[], void, undefined> {
      if (selection.isMet === null) return yield* candidates(selection, order, call);
      const all = () => documentBatchSize;
      for await (const found of documents(selection, order, call, all))
        yield found.map(({ listed }) => listed);
    },
  };
}
