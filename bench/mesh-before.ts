import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { startMesh } from "@devmesh/testkit/mesh";

/**
 * `startMesh` of the checkout in `BENCH_BEFORE`, whose mesh takes turns with that of this one; null without it. That
 * checkout needs its installation.
 */
export async function startMeshBefore(): Promise<typeof startMesh | null> {
  const { BENCH_BEFORE } = process.env;
  if (BENCH_BEFORE === undefined) return null;
  const module = join(resolve(BENCH_BEFORE), "tools/testkit/src/mesh.ts");
  return (await import(pathToFileURL(module).href)).startMesh;
}
