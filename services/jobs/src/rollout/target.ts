import type { devices } from "@devmesh/contracts/devices";
import type { JobTarget } from "@devmesh/contracts/model/job";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import type { ExecutionStore } from "../store/execution-store.ts";

/** Devices of a page: so many are inserted in one commit. */
const pageSize = 500;

export interface TargetOptions {
  readonly store: Pick<ExecutionStore, "listOfJob">;
  readonly devices: Pick<Client<typeof devices>, "selectDevices">;
}

/** Some devices of a target, ids that are no device, and where it goes on; null at the end. */
export interface TargetPage {
  readonly found: readonly string[];
  readonly missing: readonly string[];
  readonly next: string | null;
}

/** One page of the devices of a target, from a cursor on. */
export async function readTarget(
  { store, devices }: TargetOptions,
  { ids, where, of_job, states }: JobTarget,
  cursor: string | null,
  call: CallContext,
): Promise<TargetPage> {
  if (where !== undefined) {
    const after = cursor === null ? {} : { after: cursor };
    const { items, next } = await devices.selectDevices({ where, ...after, limit: pageSize }, call);
    return { found: items, missing: [], next };
  }

  async function existing(asked: readonly string[], next: string | null): Promise<TargetPage> {
    if (asked.length === 0) return { found: [], missing: [], next };
    const input = { where: {}, ids: [...asked], limit: pageSize };
    const found = (await devices.selectDevices(input, call)).items;
    const known = new Set(found);
    return { found, missing: asked.filter((id) => !known.has(id)), next };
  }

  if (of_job === undefined) {
    const all = [...new Set(ids)];
    const from = Number(cursor ?? 0);
    const to = from + pageSize;
    return existing(all.slice(from, to), to < all.length ? String(to) : null);
  }
  const after = cursor === null ? {} : { after: Number(cursor) };
  const page = await store.listOfJob({ job_id: of_job, ...after, limit: pageSize }, call.signal);
  const chosen = page.filter(({ state }) => states?.includes(state));
  const last = page.length < pageSize ? undefined : page.at(-1);
  return existing(
    chosen.map(({ device_id }) => device_id),
    last === undefined ? null : String(last.place),
  );
}
