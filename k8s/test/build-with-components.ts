import { realpath, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { buildManifests, type KubernetesObject, type overlays } from "../src/manifest.ts";

/** The objects of an overlay with further components, whose folders are paths of the repository. */
export async function buildWithComponents(
  kustomize: string,
  overlay: (typeof overlays)[number],
  components: readonly string[],
): Promise<readonly KubernetesObject[]> {
  await using folder = await tempFolder();
  // Kustomize takes relative paths only.
  const place = await realpath(folder.path);
  const at = (path: string) => relative(place, join(repository, path));
  const kustomization = {
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    namespace: "devmesh",
    resources: [at(`k8s/overlays/${overlay}`)],
    components: components.map(at),
  };
  await writeFile(join(place, "kustomization.yaml"), JSON.stringify(kustomization));
  return await buildManifests(kustomize, relative(join(repository, "k8s"), place));
}
