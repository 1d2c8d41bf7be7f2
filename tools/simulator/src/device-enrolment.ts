import type { MeshAccess } from "@devmesh/supervisor/mesh/mesh-file";
import { z } from "zod";
import { meshApi } from "./mesh-api.ts";

const WithToken = z.object({ token: z.string() });
const Described = z.object({
  name: z.string().nullable(),
  shadow: z.object({ tags: z.record(z.string(), z.unknown()) }),
});

/** What a device is created with. */
interface NewDevice {
  readonly id: string;
  readonly name: string;
  readonly tags: { readonly labels: readonly string[]; readonly units: Readonly<Record<string, string>> };
}

/**
 * The MQTT password of a device, which is created if there is none of that id. A device without name and tags gets
 * these. Throws when the mesh refuses.
 */
export async function enrolDevice(mesh: MeshAccess, { id, name, tags }: NewDevice): Promise<string> {
  const send = meshApi(mesh);
  async function succeed<T>(what: string, schema: z.ZodType<T>, path: string, body?: unknown): Promise<T> {
    const answer = await send(path, body);
    if (!answer.ok) throw new Error(`${what}: HTTP status ${answer.status}`);
    return schema.parse(await answer.json());
  }

  const created = await send("devices", { id, name, shadow: { tags } });
  if (created.ok) return WithToken.parse(await created.json()).token;
  if (created.status !== 409) throw new Error(`${id} could not be created: HTTP status ${created.status}`);
  const known = await succeed(`${id} could not be read`, Described, `devices/${id}`);
  if (known.name === null && Object.keys(known.shadow.tags).length === 0)
    await succeed(`${id} could not be described`, Described, `devices/${id}`, { name, shadow: { tags } });
  return (await succeed(`the credentials of ${id} could not be read`, WithToken, `devices/${id}/credentials`))
    .token;
}
