import type { data } from "@devmesh/contracts/data";
import type { devices as contract } from "@devmesh/contracts/devices";
import { maxLatestLimit } from "@devmesh/contracts/model/data-record";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { lengthOf } from "@devmesh/contracts/model/duration";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { selectAmong } from "../select-devices.ts";
import type { Progress } from "../store/alert-store.ts";
import { endOfSight } from "./blind-times.ts";
import { LastRecords, type SeenTopic } from "./last-records.ts";
import { filterOf, type RuleBook, type RuleOf } from "./rule-book.ts";

/** Devices of a page. */
const pageSize = 1_000;

/** How often the devices of a rule, and those that exist, are read, in milliseconds. */
const membersEveryMs = 120_000;
const existingEveryMs = 600_000;

/** How long a round may read last records, in milliseconds. */
const loadMs = 3_000;

/** Devices that one round makes fire by one rule, and those that are read at a time. */
const maxFound = 500;
const concurrency = 16;

const callMs = 5_000;

export interface SilentDevicesOptions {
  readonly devices: Pick<Client<typeof contract>, "selectDevices" | "readDevice">;
  readonly data: Pick<Client<typeof data>, "listLatest">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** A device without records; Unix milliseconds. */
export interface SilentDevice {
  readonly device_id: string;
  /** Its newest record, or its creation. */
  readonly from: number;
  /** When that was for so long as the rule wants. */
  readonly firesAt: number;
}

export type SilentDevices = ReturnType<typeof createSilentDevices>;

/** Finds devices that have sent nothing, in the replica that evaluates. */
export function createSilentDevices({ devices, data, clock, signal }: SilentDevicesOptions) {
  const last = new LastRecords();
  /** Devices of rules, by the JSON of their condition. */
  const members = new Map<string, { readonly ids: Set<string>; readonly readAt: number }>();
  /** Creation of devices that were looked at; Unix milliseconds. */
  const created = new Map<string, number>();
  const now = () => clock.now().getTime();
  let existingReadAt = now();
  const call = () => createCallContext({ timeoutMs: callMs, signal, clock });

  async function readMembers(where: DeviceCondition): Promise<Set<string>> {
    const ids = new Set<string>();
    for (let cursor: string | null = null; ; ) {
      using context = call();
      const after: { after?: string } = cursor === null ? {} : { after: cursor };
      const page = await devices.selectDevices({ where, ...after, limit: pageSize }, context);
      for (const id of page.items) ids.add(id);
      if (page.next === null) return ids;
      cursor = page.next;
    }
  }

  async function membersOf(where: DeviceCondition): Promise<Set<string>> {
    const key = JSON.stringify(where);
    const known = members.get(key);
    if (known !== undefined && now() - known.readAt < membersEveryMs) return known.ids;
    const readAt = now();
    const ids = await readMembers(where);
    members.set(key, { ids, readAt });
    return ids;
  }

  async function forgetDeleted(): Promise<void> {
    const readAt = now();
    if (readAt - existingReadAt < existingEveryMs) return;
    const existing = await readMembers({});
    last.forget((id, at) => at < readAt && !existing.has(id));
    for (const id of created.keys()) if (!existing.has(id)) created.delete(id);
    existingReadAt = readAt;
  }

  return {
    /** Follows the records of these rules. */
    follow(book: RuleBook): void {
      last.follow([...new Set(book.silent.map(({ when }) => filterOf(when)))]);
      const wanted = new Set(book.silent.map(({ where }) => JSON.stringify(where)));
      for (const key of members.keys()) if (!wanted.has(key)) members.delete(key);
    },

    note: (seen: SeenTopic): void => last.note(seen),

    /** The silence that a record ends which is not noted yet, if it was long enough; null while not all is known. */
    endedBy(
      rule: RuleOf<"silent">,
      { device_id, at }: Omit<SeenTopic, "name">,
      blind: Progress["blind"],
    ): SilentDevice | null {
      const from = last.of(filterOf(rule.when))?.get(device_id);
      if (from === undefined) return null;
      const firesAt = endOfSight(from, lengthOf(rule.when.longer_than), blind);
      return firesAt < at ? { device_id, from, firesAt } : null;
    },

    /** Reads what is not known yet of followed records, for some seconds at most. */
    async load(): Promise<void> {
      const endMs = clock.monotonicMs() + loadMs;
      await last.load(
        async (after) => {
          using context = call();
          return await data.listLatest(
            { limit: maxLatestLimit, ...(after !== undefined && { after }) },
            context,
          );
        },
        () => clock.monotonicMs() < endMs,
      );
    },

    /** Devices that are silent at a time up to which all records were noted, but those that fire; some of them. */
    async find(
      rule: RuleOf<"silent">,
      at: number,
      blind: Progress["blind"],
      fires: (deviceId: string) => boolean,
    ): Promise<SilentDevice[]> {
      const lastOf = last.of(filterOf(rule.when));
      if (lastOf === null) return [];
      await forgetDeleted();
      const longerMs = lengthOf(rule.when.longer_than);
      const isSilent = (from: number) => from + longerMs <= at && endOfSight(from, longerMs, blind) <= at;
      const candidates: string[] = [];
      const known = await membersOf(rule.where);
      for (const id of known) {
        const from = Math.max(lastOf.get(id) ?? 0, created.get(id) ?? 0);
        if (isSilent(from) && !fires(id)) candidates.push(id);
        if (candidates.length === maxFound) break;
      }
      // They may have left the rule since its devices were read.
      const still = await selectAmong(devices, rule.where, candidates, call);
      for (const id of candidates) if (!still.has(id)) known.delete(id);
      const found: SilentDevice[] = [];
      for (let begin = 0; begin < candidates.length; begin += concurrency) {
        const some = candidates.slice(begin, begin + concurrency).filter((id) => still.has(id));
        await Promise.all(
          some.map(async (id) => {
            using context = call();
            const createdAt = await readCreation(devices, id, context);
            if (createdAt === null) return;
            // A device of that id may have been deleted and created again since.
            created.set(id, createdAt);
            const from = Math.max(lastOf.get(id) ?? 0, createdAt);
            if (isSilent(from))
              found.push({ device_id: id, from, firesAt: endOfSight(from, longerMs, blind) });
          }),
        );
      }
      return found;
    },

    /** Forgets all, once another replica evaluates. */
    clear(): void {
      last.follow([]);
      members.clear();
      created.clear();
    },
  };
}

/** When a device was created; Unix milliseconds, null where there is none. */
export async function readCreation(
  devices: Pick<Client<typeof contract>, "readDevice">,
  id: string,
  call: CallContext,
): Promise<number | null> {
  try {
    const { device } = await devices.readDevice({ id, principal: { kind: "master" } }, call);
    return Date.parse(String(device.created_at));
  } catch (error) {
    if (isReason(error, "device_not_found")) return null;
    throw error;
  }
}
