import type { devices } from "@devmesh/contracts/devices";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { cutPage } from "@devmesh/service-kit/rpc/page";
import type { DiagnosisListing, ListedDiagnosis } from "../diagnostics/diagnosis-history.ts";
import { type DeviceSelectionOptions, selectBy } from "./device-selection.ts";
import type { DeviceWalk } from "./device-walk.ts";

/** Entries whose devices are looked up at once. */
const batchSize = 1_000;
/** Entries of one page. */
const maxEntries = 1_000;

export interface DiagnosisListOptions extends DeviceSelectionOptions {
  readonly walk: DeviceWalk;
  readonly diagnostics: DeviceSelectionOptions["diagnostics"] & {
    readonly list: (listing: DiagnosisListing) => ListedDiagnosis[] | null;
  };
}

/** Pages of what happened to devices that meet a condition, newest first. */
export function createListDiagnostics(
  options: DiagnosisListOptions,
): Implementation<typeof devices>["listDiagnostics"] {
  return async ({ name, where = {}, since, limit = Number.POSITIVE_INFINITY, after }, ctx) => {
    const entries = options.diagnostics.list({
      ...(name !== undefined && { word: name }),
      ...(since !== undefined && { since: Date.parse(since) }),
      ...(after !== undefined && { after }),
    });
    if (entries === null) return ctx.fail("cursor_invalid");
    const wanted = Math.min(limit, maxEntries);
    const found: ListedDiagnosis[] = [];
    for (let from = 0; from < entries.length && found.length <= wanted; from += batchSize) {
      const batch = entries.slice(from, from + batchSize);
      const ids = [...new Set(batch.map(({ id }) => id))];
      const createdAt = new Map<string, number>();
      for await (const portion of options.walk.devices(selectBy(where, options, ids), {}, ctx))
        for (const { id, created_at } of portion) createdAt.set(id, created_at);
      found.push(
        ...batch.filter(({ id, isSince }) => isSince(createdAt.get(id) ?? Number.POSITIVE_INFINITY)),
      );
    }
    const { items, next } = cutPage(found, {
      limit: wanted,
      cursorOf: ({ cursor }) => cursor,
      sizeOf: (entry) => Buffer.byteLength(JSON.stringify(entry.describe())),
    });
    return { next, items: items.map((entry) => entry.describe()) };
  };
}
