import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { parseAllDocuments } from "yaml";
import { z } from "zod";

/** The overlays, by the folder's name. */
export const overlays = ["single", "production", "external-mongodb", "external"] as const;

const Labels = z.record(z.string(), z.string());

const EnvironmentEntry = z.object({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z
    .object({
      secretKeyRef: z.object({ name: z.string(), key: z.string() }).optional(),
      fieldRef: z.object({ fieldPath: z.string() }).optional(),
    })
    .optional(),
});

const Probe = z.object({
  httpGet: z.object({ port: z.string() }).optional(),
  exec: z.object({ command: z.array(z.string()) }).optional(),
  tcpSocket: z.object({ port: z.string() }).optional(),
});

/** The checked part of a container. */
const Container = z.object({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()).optional(),
  env: z.array(EnvironmentEntry).default([]),
  envFrom: z
    .array(
      z.object({
        configMapRef: z.object({ name: z.string() }).optional(),
        secretRef: z.object({ name: z.string() }).optional(),
      }),
    )
    .default([]),
  ports: z.array(z.object({ name: z.string() })).default([]),
  startupProbe: Probe.optional(),
  readinessProbe: Probe.optional(),
  livenessProbe: Probe.optional(),
  resources: z.looseObject({}).optional(),
  lifecycle: z.object({ preStop: Probe.optional() }).optional(),
  securityContext: z.looseObject({ runAsUser: z.number().optional() }).optional(),
  /** Of a sidecar among the `initContainers`. */
  restartPolicy: z.literal("Always").optional(),
});
export type Container = z.infer<typeof Container>;

/** The checked part of a pod. */
const PodTemplate = z.object({
  metadata: z.object({ labels: Labels.default({}) }).default({ labels: {} }),
  spec: z.looseObject({
    serviceAccountName: z.string().optional(),
    automountServiceAccountToken: z.boolean().optional(),
    terminationGracePeriodSeconds: z.number().optional(),
    securityContext: z.looseObject({ runAsUser: z.number(), runAsGroup: z.number() }),
    containers: z.array(Container),
    initContainers: z.array(Container).default([]),
    volumes: z.array(z.looseObject({ name: z.string() })).default([]),
  }),
});

/** Any object of Kubernetes. */
export const KubernetesObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional(), labels: Labels.optional() }),
});
export type KubernetesObject = z.infer<typeof KubernetesObject>;

export interface Workload {
  readonly kind: "Deployment" | "StatefulSet" | "Job";
  readonly name: string;
  readonly template: z.infer<typeof PodTemplate>;
  readonly object: KubernetesObject;
}

/** The objects that `kustomize build` makes of a folder below `k8s/`. Throws with kustomize's message. */
export async function buildManifests(
  kustomize: string,
  folder: string,
): Promise<readonly KubernetesObject[]> {
  const { stdout } = await promisify(execFile)(kustomize, ["build", join(repository, "k8s", folder)], {
    maxBuffer: 64 * 1024 * 1024,
  });
  return parseAllDocuments(stdout).map((document) => KubernetesObject.parse(document.toJS()));
}

/** The objects of one kind. */
export function ofKind(objects: readonly KubernetesObject[], kind: string): readonly KubernetesObject[] {
  return objects.filter((object) => object.kind === kind);
}

/** All workloads. */
export function workloadsOf(objects: readonly KubernetesObject[]): readonly Workload[] {
  return objects.flatMap((object) => {
    const { kind } = object;
    if (kind !== "Deployment" && kind !== "StatefulSet" && kind !== "Job") return [];
    const { template } = z.object({ template: PodTemplate }).parse(object.spec);
    return [{ kind, name: object.metadata.name, template, object }];
  });
}
