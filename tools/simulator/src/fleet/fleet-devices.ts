import type { MeshAccess } from "@devmesh/supervisor/mesh/mesh-file";
import { z } from "zod";
import { type DeviceKind, deviceKinds, simulatedKinds } from "../models/device-models.ts";

/** Most devices of one fleet: ids have one length, and sort. */
export const maxFleet = 9_999;

/** Devices that are deleted at the same time. */
const maxDeletions = 4;
const requestMs = 30_000;

/** Where the devices are; each site has its own mix of them. */
const sites = ["Hamburg", "Lyon", "Porto", "Malmö", "Graz", "Turin", "Gdańsk"] as const;

/** Of ten devices, how many run the newest firmware, and how many at most the one before. */
const onNewestOfTen = 7;
const onNewerOfTen = 9;

/** The id of a device, counted from 1. */
export function fleetDeviceId(prefix: string, index: number): string {
  return `${prefix}-${String(index).padStart(4, "0")}`;
}

/** A device of a fleet, which depends on its index alone. */
export interface FleetDevice {
  readonly kind: DeviceKind;
  readonly firmware: string;
  readonly name: string;
  /** `fleet` marks it for {@link removeFleet}. */
  readonly tags: {
    readonly labels: readonly string[];
    readonly units: Readonly<Record<string, string>>;
    readonly fleet: string;
  };
}

/** What the device of an index is: its kind, name, labels and firmware, as in a real fleet. */
export function fleetDevice(prefix: string, index: number): FleetDevice {
  const kind = nth(deviceKinds, index - 1);
  const round = Math.floor((index - 1) / deviceKinds.length);
  const { firmware, names, units } = simulatedKinds[kind];
  const site = nth(sites, index + round);
  const name = nth(names, round);
  const number = 1 + Math.floor(round / names.length);
  // 3 has no divisor in common with 10, so that each number comes once in ten rounds.
  const place = (round * 3 + ((index - 1) % deviceKinds.length)) % 10;
  const [newest, newer = newest, old = newer] = firmware;
  return {
    kind,
    firmware: place < onNewestOfTen ? newest : place < onNewerOfTen ? newer : old,
    name: `${name} ${number}, ${site}`,
    tags: { labels: [kind, labelOf(site)], units, fleet: prefix },
  };
}

function nth<T>(list: readonly [T, ...T[]], index: number): T {
  return list[index % list.length] ?? list[0];
}

/** A site in letters that every keyboard has. */
function labelOf(site: string): string {
  return site.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();
}

const Devices = z.array(
  z.object({ id: z.string(), shadow: z.object({ tags: z.record(z.string(), z.unknown()) }) }),
);

/**
 * Deletes the devices of fleets with that prefix, by id and tag, and returns their number. Throws when the mesh
 * refuses.
 */
export async function removeFleet({ url, masterKey }: MeshAccess, prefix: string): Promise<number> {
  const devices = `${url}/api/v2/devices`;
  const headers = { Authorization: `Bearer ${masterKey}` };
  const bound = () => AbortSignal.timeout(requestMs);
  const listed = await fetch(`${devices}?filter=${encodeURIComponent(`${prefix}-`)}`, {
    headers,
    signal: bound(),
  });
  if (!listed.ok) throw new Error(`the devices could not be listed: HTTP status ${listed.status}`);
  const ours = Devices.parse(await listed.json()).filter(
    ({ id, shadow }) =>
      id.startsWith(`${prefix}-`) &&
      /^\d{4}$/.test(id.slice(prefix.length + 1)) &&
      shadow.tags.fleet === prefix,
  );
  const left = ours.values();
  const remove = async () => {
    for (const { id } of left) {
      const answer = await fetch(`${devices}/${id}`, { method: "DELETE", headers, signal: bound() });
      if (!answer.ok && answer.status !== 404)
        throw new Error(`${id} could not be deleted: HTTP status ${answer.status}`);
    }
  };
  await Promise.all(Array.from({ length: maxDeletions }, remove));
  return ours.length;
}
