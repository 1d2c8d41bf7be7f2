import { readFile, realpath, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { parse } from "yaml";
import { z } from "zod";

/** The overlays that bring their own nats-server. */
export const appliedOverlays = ["single", "production", "external-mongodb"] as const;

/** An overlay, and how it is changed for a cluster. */
export interface AppliedOverlay {
  readonly overlay: (typeof appliedOverlays)[number];
  /** Where the images are, such as `registry.example.com`; default: as the overlay says. */
  readonly registry?: string | undefined;
  /** Their tag; default: as the overlay says. */
  readonly tag?: string | undefined;
  /** Images of others by their name in the overlay, such as `nats` and `registry.example.com/nats:2.15.2-alpine`. */
  readonly images: ReadonlyMap<string, string>;
  /** Whether all pods share a node: nats-servers may, and pods request little. */
  readonly oneNode: boolean;
}

const Image = z.object({
  name: z.string(),
  newName: z.string().optional(),
  newTag: z.string().optional(),
});
type Image = z.infer<typeof Image>;

const Kustomization = z.looseObject({
  resources: z.array(z.string()),
  components: z.array(z.string()),
  images: z.array(Image),
  patches: z.array(z.unknown()).default([]),
});

/** Writes a `kustomization.yaml` of the changed overlay into a folder, for `kubectl apply -k`. */
export async function writeOverlay(folder: string, applied: AppliedOverlay): Promise<void> {
  const manifests = join(repository, "k8s");
  const file = join(manifests, "overlays", applied.overlay, "kustomization.yaml");
  const original = Kustomization.parse(parse(await readFile(file, "utf8")));
  // Kustomize takes relative paths only.
  const base = relative(await realpath(folder), manifests);
  const moved = (path: string) => join(base, "overlays", applied.overlay, path);
  const listed = new Set(original.images.map(({ name }) => name));
  const unlisted = [...applied.images.keys()].filter((name) => !listed.has(name)).map((name) => ({ name }));
  const changed = {
    ...original,
    resources: original.resources.map(moved),
    components: original.components.map(moved),
    // Components name images, too.
    images: [...original.images, ...unlisted].map((image) => imageOf(image, applied)),
    patches: [...original.patches, ...(applied.oneNode ? oneNodePatches : [])],
  };
  // JSON is YAML.
  await writeFile(join(folder, "kustomization.yaml"), JSON.stringify(changed, null, 2));
}

function imageOf(image: Image, { registry, tag, images }: AppliedOverlay): Image {
  const { name } = image;
  if (name.startsWith("devmesh-")) {
    return {
      ...image,
      ...(registry !== undefined && { newName: `${registry}/${name}` }),
      ...(tag !== undefined && { newTag: tag }),
    };
  }
  const other = images.get(name);
  if (other === undefined) return image;
  // The colon of a port is followed by a slash.
  const [, newName = other, newTag] = /^(.+):([^/]+)$/.exec(other) ?? [];
  return { ...image, newName, ...(newTag !== undefined && { newTag }) };
}

const oneNodePatches = [
  {
    target: { kind: "StatefulSet", name: "nats" },
    patch: JSON.stringify({
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "nats" },
      spec: { template: { spec: { affinity: { $patch: "delete" } } } },
    }),
  },
  {
    target: { kind: "Deployment|StatefulSet|Job" },
    patch: JSON.stringify([
      {
        op: "replace",
        path: "/spec/template/spec/containers/0/resources/requests",
        value: { cpu: "10m", memory: "64Mi" },
      },
    ]),
  },
];
