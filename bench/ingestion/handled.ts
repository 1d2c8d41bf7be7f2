import { setTimeout as sleep } from "node:timers/promises";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { PublishedCount } from "./publisher.ts";

/** Rendering metrics costs the service milliseconds. */
const pollMs = 100;

/** The service that handles what is published, and its counter of that. */
export const handlers = {
  records: { service: "data", counter: /^devmesh_data_records_stored_total\{[^}]*qos="1"[^}]*\} (\d+)/m },
  shadow: {
    service: "rpc-bridge",
    // Not what its consumer holds: among that are the deltas that the mesh publishes.
    counter: /^devmesh_device_messages_handled_total\{[^}]*kind="shadowUpdate"[^}]*\} (\d+)/m,
  },
} as const;

/** Messages of a kind that a mesh has handled since its start. */
export async function handledBy(mesh: TestMesh, kind: PublishedCount): Promise<number> {
  const { service, counter } = handlers[kind];
  const { services } = await mesh.parts();
  const metrics = await (await fetch(`${services[service]?.ops}/metrics`)).text();
  return Number(counter.exec(metrics)?.[1] ?? 0);
}

/** Resolves when a mesh has handled so many messages of a kind since its start. */
export async function untilHandled(mesh: TestMesh, kind: PublishedCount, messages: number): Promise<void> {
  while ((await handledBy(mesh, kind)) < messages) await sleep(pollMs);
}
