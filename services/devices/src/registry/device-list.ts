import type { devices } from "@devmesh/contracts/devices";
import type { DeviceListItem, DeviceListOrder } from "@devmesh/contracts/model/device";
import { withOlderParameters } from "@devmesh/contracts/model/device-condition";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { cutPage } from "@devmesh/service-kit/rpc/page";
import { wordOf } from "../diagnostics/diagnosis-history.ts";
import type { ListOrder } from "../store/list-order.ts";
import { type DeviceSelectionOptions, selectBy } from "./device-selection.ts";
import type { DeviceWalk, FoundDevice } from "./device-walk.ts";

/**
 * Bytes of documents after which a page is full: a reply is checked and written in one turn of the event loop, which
 * other calls wait for.
 */
const pageBytes = 96 * 1024;

/** What lists need. */
export interface DeviceListOptions extends DeviceSelectionOptions {
  readonly walk: DeviceWalk;
}

const listOrders: Readonly<Record<DeviceListOrder, ListOrder>> = {
  asc: {},
  desc: { descending: true },
  version: { by: "version" },
  "-version": { by: "version", descending: true },
  last_seen: { by: "last_seen" },
  "-last_seen": { by: "last_seen", descending: true },
};

interface Candidate {
  readonly cursor: string;
  readonly item: DeviceListItem;
  readonly bytes: number;
}

/** Pages of devices in an order. */
export function createListDevices(options: DeviceListOptions): Implementation<typeof devices>["listDevices"] {
  return async (
    { limit = Number.POSITIVE_INFINITY, after, order = "asc", online, filter, where = {} },
    ctx,
  ) => {
    const asked = withOlderParameters(where, { online, filter });
    if (asked === null) return { next: null, items: [] };
    const found: Candidate[] = [];
    let bytes = 0;
    const isFull = () => found.length > limit || bytes > pageBytes;
    const refuse = () => ctx.fail("cursor_invalid");
    const walking = { ...listOrders[order], after, refuse };
    // One more than the limit shows whether the page is the last one.
    const wanted = () => limit + 1 - found.length;
    for await (const portion of options.walk.documents(selectBy(asked, options), walking, ctx, wanted)) {
      for (const one of portion) {
        const candidate = candidateOf(one, options);
        found.push(candidate);
        bytes += candidate.bytes;
      }
      if (isFull()) break;
    }
    const { items, next } = cutPage(found, {
      limit,
      cursorOf: ({ cursor }) => cursor,
      sizeOf: (candidate) => candidate.bytes,
      more: isFull(),
    });
    return { next, items: items.map(({ item }) => item) };
  };
}

function candidateOf({ listed, device }: FoundDevice, { diagnostics }: DeviceListOptions): Candidate {
  const problems = diagnostics.problemsOf(listed.id, listed.created_at).map(wordOf);
  const item = problems.length === 0 ? device : { ...device, problems };
  return { cursor: listed.cursor, item, bytes: Buffer.byteLength(JSON.stringify(item)) };
}

/** Pages of ids in the order of creation. */
export function createSelectDevices(
  options: DeviceListOptions,
): Implementation<typeof devices>["selectDevices"] {
  return async ({ where, ids, after, limit }, ctx) => {
    const found: { readonly id: string; readonly cursor: string }[] = [];
    const walking = { after, refuse: () => ctx.fail("cursor_invalid") };
    for await (const portion of options.walk.devices(selectBy(where, options, ids), walking, ctx)) {
      found.push(...portion);
      if (found.length > limit) break;
    }
    const { items, next } = cutPage(found, {
      limit,
      cursorOf: ({ cursor }) => cursor,
      sizeOf: ({ id }) => id.length + 2,
    });
    return { next, items: items.map(({ id }) => id) };
  };
}
