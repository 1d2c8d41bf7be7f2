import type { MeshAccess } from "@devmesh/launcher/mesh/mesh-file";
import { z } from "zod";

/** Most devices of one fleet: ids have one length, and sort. */
export const maxFleet = 9_999;

const namePrefix = "Simulated fleet:";
/** Devices that are deleted at the same time. */
const maxDeletions = 4;
const requestMs = 30_000;

/** The id of a device, counted from 1. */
export function fleetDeviceId(prefix: string, index: number): string {
  return `${prefix}-${String(index).padStart(4, "0")}`;
}

/** The name that marks a device of a fleet. */
export function fleetDeviceName(kind: string): string {
  return `${namePrefix} ${kind}`;
}

const Devices = z.array(z.object({ id: z.string(), name: z.string().nullable() }));

/**
 * Deletes the devices of fleets with that prefix, by id and name, and returns their number. Throws when the mesh
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
    ({ id, name }) =>
      id.startsWith(`${prefix}-`) &&
      /^\d{4}$/.test(id.slice(prefix.length + 1)) &&
      name?.startsWith(`${namePrefix} `),
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
