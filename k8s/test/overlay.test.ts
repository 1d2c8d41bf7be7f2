import { join, relative } from "node:path";
import { serviceNames } from "@devmesh/contracts/mesh";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";
import { type AppliedOverlay, appliedOverlays, writeOverlay } from "../src/cluster/overlay.ts";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { buildManifests, type KubernetesObject, workloadsOf } from "../src/manifest.ts";

const builder = await findGoProgram("kustomize", kustomize);
const withBuilder = builder === null ? describe.skip : describe;

const unchanged = { images: new Map(), oneNode: false };

async function build(applied: AppliedOverlay): Promise<readonly KubernetesObject[]> {
  await using folder = await tempFolder();
  await writeOverlay(folder.path, applied);
  return await buildManifests(builder ?? "", relative(join(repository, "k8s"), folder.path));
}

const imagesOf = (objects: readonly KubernetesObject[]) =>
  new Set(workloadsOf(objects).flatMap(({ template }) => template.spec.containers.map(({ image }) => image)));

withBuilder("an overlay that npm run cluster applies", () => {
  test.each(appliedOverlays)("is %s itself without options", async (overlay) => {
    expect(await build({ overlay, ...unchanged })).toEqual(
      await buildManifests(builder ?? "", `overlays/${overlay}`),
    );
  });

  test("has its images where they are, of others too", async () => {
    const images = new Map([["nats", "localhost:5000/nats:2.15.2"]]);
    const objects = await build({
      overlay: "single",
      ...unchanged,
      images,
      registry: "things.example.org/x",
      tag: "7",
    });
    expect([...imagesOf(objects)].sort()).toEqual([
      "localhost:5000/nats:2.15.2",
      ...serviceNames.toSorted().map((service) => `things.example.org/x/devmesh-${service}:7`),
    ]);
  });

  test("has the image of a component where it is", async () => {
    const images = new Map([["haproxy", "localhost:5000/haproxy:3.2"]]);
    expect(imagesOf(await build({ overlay: "production", ...unchanged, images }))).toContain(
      "localhost:5000/haproxy:3.2",
    );
  });

  test("lets all pods share one node", async () => {
    const objects = await build({ overlay: "production", ...unchanged, oneNode: true });
    for (const { name, template, object } of workloadsOf(objects)) {
      if (name === "nats") expect(template.spec.affinity).toBeUndefined();
      expect(JSON.stringify(object.spec)).toContain('"requests":{"cpu":"10m","memory":"64Mi"}');
    }
  });
});
