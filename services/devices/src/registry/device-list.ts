import { setImmediate as nextTurn } from "node:timers/promises";
import type { devices } from "@devmesh/contracts/devices";
import type { Device } from "@devmesh/contracts/model/device";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { cutPage } from "@devmesh/service-kit/rpc/page";
import type { Presence } from "../presence.ts";
import type { DeviceStore, ListedDevice } from "../store/device-store.ts";
import { describeDevice } from "./device-view.ts";

/** Devices listed at once; their documents are read in smaller portions. */
const idBatchSize = 1_000;
/** Documents read at once: few enough that the largest ones still fit into memory easily. */
const documentBatchSize = 50;
/** Bytes of documents after which a page is full; the reply's own limit cuts more exactly. */
const pageBytes = 480 * 1024;

/** What lists need. */
export interface DeviceListOptions {
  readonly store: Pick<DeviceStore, "list" | "findAll">;
  readonly presence: Presence;
}

interface Candidate {
  readonly position: string;
  readonly device: Device;
  readonly bytes: number;
}

/**
 * Pages of devices in the order of creation or its reverse. Presence is not in the store, so the list is walked by id
 * and position, which is cheap, and only documents that belong on the page are read.
 */
export function createListDevices({
  store,
  presence,
}: DeviceListOptions): Implementation<typeof devices>["listDevices"] {
  return async ({ limit = Number.POSITIVE_INFINITY, after, order, online, filter }, ctx) => {
    const { signal } = ctx;
    const isWanted = ({ id }: ListedDevice) => online === undefined || presence.isOnline(id) === online;
    const candidates: Candidate[] = [];
    let bytes = 0;
    let cursor = after;
    const isFull = () => candidates.length > limit || bytes > pageBytes;

    for (let more = true; more && !isFull(); ) {
      const listing = {
        newestFirst: order === "desc",
        limit: idBatchSize,
        ...(cursor !== undefined && { after: cursor }),
        ...(filter !== undefined && { filter }),
      };
      const listed = await store.list(listing, signal);
      if (listed === null) return ctx.fail("cursor_invalid");
      more = listed.length === idBatchSize;
      cursor = listed.at(-1)?.position;
      const wanted = listed.filter(isWanted);
      for (let from = 0; from < wanted.length && !isFull(); from += documentBatchSize) {
        // One more than the limit shows whether the page is the last one.
        const portion = wanted.slice(from, from + Math.min(documentBatchSize, limit + 1 - candidates.length));
        for (const candidate of await read(portion, signal)) {
          candidates.push(candidate);
          bytes += candidate.bytes;
        }
      }
      // The store may answer synchronously: other calls get their turn.
      await nextTurn();
    }

    const { items, next } = cutPage(candidates, {
      limit,
      cursorOf: ({ position }) => position,
      sizeOf: (candidate) => candidate.bytes,
      more: isFull(),
    });
    return { next, items: items.map(({ device }) => device) };
  };

  /** The documents of a portion in its order, without devices deleted meanwhile. */
  async function read(portion: readonly ListedDevice[], signal: AbortSignal): Promise<Candidate[]> {
    const found = await store.findAll(
      portion.map(({ id }) => id),
      signal,
    );
    const byId = new Map(found.map((device) => [device.id, device]));
    return portion.flatMap(({ id, position }) => {
      const stored = byId.get(id);
      if (stored === undefined) return [];
      const device = describeDevice(stored, presence);
      return [{ position, device, bytes: Buffer.byteLength(JSON.stringify(device)) }];
    });
  }
}
