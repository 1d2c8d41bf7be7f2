import type { TestMesh } from "@devmesh/testkit/mesh";

/** Process ids of all parts of a mesh as they run now: the launcher, `nats-server`, and each service by its name. */
export async function meshProcesses(mesh: TestMesh): Promise<Readonly<Record<string, number>>> {
  const { pid, nats_server, services } = await mesh.parts();
  if (nats_server === null) throw new Error("the mesh has no nats-server of its own");
  const ofServices = Object.entries(services).map(([name, part]) => [name, part.pid] as const);
  return { launcher: pid, "nats-server": nats_server.pid, ...Object.fromEntries(ofServices) };
}
