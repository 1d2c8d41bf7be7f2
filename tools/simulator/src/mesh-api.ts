import type { MeshAccess } from "@devmesh/supervisor/mesh/mesh-file";

const requestMs = 10_000;

/** Asks the REST API of a mesh: GET without a body, POST with one. `path` is below `/api/v2/`. */
export function meshApi({ url, masterKey }: MeshAccess) {
  const headers = { Authorization: `Bearer ${masterKey}`, "Content-Type": "application/json" };
  return (path: string, body?: unknown): Promise<Response> =>
    fetch(`${url}/api/v2/${path}`, {
      headers,
      signal: AbortSignal.timeout(requestMs),
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });
}
