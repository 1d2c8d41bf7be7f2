import type { MeshAccess } from "@devmesh/launcher/mesh/mesh-file";
import { z } from "zod";

const WithToken = z.object({ token: z.string() });

/** What a device is created with. */
interface NewDevice {
  readonly id: string;
  readonly name: string;
  readonly labels: readonly string[];
}

/** The MQTT password of a device, which is created if there is none of that id. Throws when the mesh refuses. */
export async function enrolDevice(
  { url, masterKey }: MeshAccess,
  { id, name, labels }: NewDevice,
): Promise<string> {
  const devices = `${url}/api/v2/devices`;
  const headers = { Authorization: `Bearer ${masterKey}`, "Content-Type": "application/json" };
  const bound = () => AbortSignal.timeout(10_000);
  const body = JSON.stringify({ id, name, shadow: { tags: { labels } } });
  const created = await fetch(devices, { method: "POST", headers, body, signal: bound() });
  if (created.ok) return WithToken.parse(await created.json()).token;
  if (created.status !== 409) throw new Error(`${id} could not be created: HTTP status ${created.status}`);
  const known = await fetch(`${devices}/${id}/credentials`, { headers, signal: bound() });
  if (!known.ok) throw new Error(`the credentials of ${id} could not be read: HTTP status ${known.status}`);
  return WithToken.parse(await known.json()).token;
}
