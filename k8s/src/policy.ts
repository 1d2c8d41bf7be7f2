import { z } from "zod";
import { configMapData } from "./container-environment.ts";
import { type Container, type KubernetesObject, ofKind, type Workload, workloadsOf } from "./manifest.ts";

/** Time of a service to close after its calls are done, in seconds (run-service). */
const CLOSING_S = 5;

/** Patterns of secrets: a key of the product, an nkey seed, a password in a URL, a private key. */
const secretLooks = [
  /\b(mk|dk|ck|pk|dt)_[0-9A-Za-z]{32}\b/,
  /\bS[AUN][A-Z2-7]{56}\b/,
  /:\/\/[^/\s:@]+:(?!\$[({])[^/\s@]+@/,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
];

const Selector = z.object({ matchLabels: z.record(z.string(), z.string()).default({}) });

/**
 * Violations of our own rules by built manifests, a sentence each: least privilege, limits, probes, disruption budgets,
 * no secret in clear, no traffic without a policy. `operatorSecrets` are the names of Secrets that the operator makes.
 */
export function policyFindings(
  objects: readonly KubernetesObject[],
  operatorSecrets: ReadonlySet<string>,
): readonly string[] {
  const workloads = workloadsOf(objects);
  return [
    ...workloads.flatMap((workload) => podFindings(workload, objects)),
    ...workloads.flatMap((workload) =>
      workload.template.spec.containers.flatMap((container) =>
        containerFindings(workload, container).map(
          (finding) => `${workload.kind}/${workload.name}: container ${container.name}: ${finding}`,
        ),
      ),
    ),
    ...workloads.flatMap((workload) => referenceFindings(workload, objects, operatorSecrets)),
    ...disruptionFindings(workloads, objects),
    ...networkFindings(workloads, objects),
    ...serviceFindings(workloads, objects),
    ...replicaFindings(objects),
    ...secretFindings(objects),
  ];
}

function podFindings(workload: Workload, objects: readonly KubernetesObject[]): string[] {
  const { spec } = workload.template;
  const { securityContext } = spec;
  const findings: string[] = [];
  if (securityContext?.runAsNonRoot !== true) findings.push("may run as root");
  if (!securityContext?.runAsUser) findings.push("names no user by number");
  if (securityContext?.seccompProfile?.type !== "RuntimeDefault") findings.push("has no seccomp profile");
  if (spec.hostNetwork || spec.hostPID) findings.push("shares a namespace of the node");
  if (spec.volumes.some(({ hostPath }) => hostPath !== undefined)) findings.push("mounts a path of the node");
  if (spec.initContainers.length > 0) findings.push("has init containers, which no check looks at");
  const mounted = spec.automountServiceAccountToken !== false;
  const bound = ofKind(objects, "RoleBinding").some(({ subjects }) =>
    z
      .array(z.object({ name: z.string() }))
      .parse(subjects)
      .some(({ name }) => name === spec.serviceAccountName),
  );
  if (mounted && !bound) findings.push("has a service account's token that is good for nothing");
  if (workload.kind !== "Job") {
    const grace = spec.terminationGracePeriodSeconds ?? 30;
    const drain = Math.max(0, ...spec.containers.map((container) => drainSeconds(container, objects)));
    if (grace <= drain) findings.push(`is killed after ${grace} s, before it has drained in ${drain} s`);
  }
  return findings.map((finding) => `${workload.kind}/${workload.name}: ${finding}`);
}

/** Time of a service to stop, in seconds; 0 for others. */
function drainSeconds(container: Container, objects: readonly KubernetesObject[]): number {
  for (const { configMapRef } of container.envFrom) {
    const drain = configMapRef && configMapData(objects, configMapRef.name).DRAIN_MS;
    if (drain) return Number(drain) / 1_000 + CLOSING_S;
  }
  return 0;
}

function containerFindings(workload: Workload, container: Container): string[] {
  const { securityContext, resources, image } = container;
  const findings: string[] = [];
  if (securityContext?.privileged) findings.push("is privileged");
  if (securityContext?.allowPrivilegeEscalation !== false) findings.push("may gain privileges");
  if (securityContext?.readOnlyRootFilesystem !== true) findings.push("can write its root file system");
  if (!securityContext?.capabilities?.drop.includes("ALL")) findings.push("keeps capabilities");
  if (securityContext?.capabilities?.add.length) findings.push("adds capabilities");
  for (const bound of ["requests", "limits"] as const) {
    for (const resource of ["cpu", "memory"]) {
      if (!resources?.[bound][resource]) findings.push(`has no ${resource} among its ${bound}`);
    }
  }
  const reference = image.slice(image.lastIndexOf("/") + 1);
  if (!image.includes("@sha256:") && !/:(?!latest$).+$/.test(reference)) findings.push(`has no pinned image`);
  if (workload.kind !== "Job") {
    for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"] as const) {
      if (container[probe] === undefined) findings.push(`has no ${probe}`);
    }
    for (const port of probePorts(container)) {
      const known = container.ports.some(
        ({ name, containerPort }) => name === port || containerPort === port,
      );
      if (!known) findings.push(`is probed on the port ${port}, which it does not declare`);
    }
  }
  return findings;
}

function probePorts({ startupProbe, readinessProbe, livenessProbe }: Container): (string | number)[] {
  return [startupProbe, readinessProbe, livenessProbe].flatMap((probe) => {
    const port = probe?.httpGet?.port ?? probe?.tcpSocket?.port;
    return port === undefined ? [] : [port];
  });
}

/** Every reference of a pod exists, or is made by the operator. */
function referenceFindings(
  { kind, name, template: { spec } }: Workload,
  objects: readonly KubernetesObject[],
  operatorSecrets: ReadonlySet<string>,
): string[] {
  const named = (of: string) => new Set(ofKind(objects, of).map(({ metadata }) => metadata.name));
  const secrets = new Set([...named("Secret"), ...operatorSecrets]);
  const wanted: [string, ReadonlySet<string>, string | undefined][] = [
    ["ServiceAccount", named("ServiceAccount"), spec.serviceAccountName ?? "default"],
    ...spec.volumes.flatMap(({ configMap, secret, persistentVolumeClaim }): typeof wanted => [
      ["ConfigMap", named("ConfigMap"), configMap?.name],
      ["Secret", secrets, secret?.secretName],
      ["PersistentVolumeClaim", named("PersistentVolumeClaim"), persistentVolumeClaim?.claimName],
    ]),
    ...spec.containers.flatMap(({ env, envFrom }): typeof wanted => [
      ...envFrom.flatMap(({ configMapRef, secretRef }): typeof wanted => [
        ["ConfigMap", named("ConfigMap"), configMapRef?.name],
        ["Secret", secrets, secretRef?.name],
      ]),
      ...env.map(({ valueFrom }): (typeof wanted)[number] => [
        "Secret",
        secrets,
        valueFrom?.secretKeyRef?.name,
      ]),
    ]),
  ];
  return wanted.flatMap(([of, known, reference]) =>
    reference === undefined || known.has(reference)
      ? []
      : [`${kind}/${name}: names the ${of} ${reference}, which nobody makes`],
  );
}

function disruptionFindings(workloads: readonly Workload[], objects: readonly KubernetesObject[]): string[] {
  const budgets = ofKind(objects, "PodDisruptionBudget").map(({ spec }) =>
    z.object({ selector: Selector }).parse(spec),
  );
  return workloads
    .filter(({ kind }) => kind !== "Job")
    .filter(
      ({ template }) =>
        !budgets.some(({ selector }) => selects(selector.matchLabels, template.metadata.labels)),
    )
    .map(({ kind, name }) => `${kind}/${name}: no PodDisruptionBudget selects its pods`);
}

const PolicySpec = z.object({
  podSelector: z.looseObject({}),
  policyTypes: z.array(z.string()),
  ingress: z.array(z.unknown()).default([]),
  egress: z.array(z.unknown()).default([]),
});

function networkFindings(workloads: readonly Workload[], objects: readonly KubernetesObject[]): string[] {
  const denied = new Set(
    ofKind(objects, "NetworkPolicy").flatMap(({ metadata, spec }) => {
      const policy = PolicySpec.parse(spec);
      const isDefaultDeny =
        Object.keys(policy.podSelector).length === 0 &&
        ["Ingress", "Egress"].every((type) => policy.policyTypes.includes(type)) &&
        policy.ingress.length + policy.egress.length === 0;
      return isDefaultDeny ? [metadata.namespace] : [];
    }),
  );
  return workloads
    .filter(({ object }) => !denied.has(object.metadata.namespace))
    .map(({ kind, name }) => `${kind}/${name}: no NetworkPolicy denies its pods what is not allowed`);
}

const ServiceSpec = z.object({
  selector: z.record(z.string(), z.string()),
  ports: z.array(z.object({ targetPort: z.union([z.string(), z.number()]) })),
});

/** A Service selects pods and an existing port. */
function serviceFindings(workloads: readonly Workload[], objects: readonly KubernetesObject[]): string[] {
  return ofKind(objects, "Service").flatMap(({ metadata: { name }, spec }) => {
    const { selector, ports } = ServiceSpec.parse(spec);
    const selected = workloads.filter(({ template }) => selects(selector, template.metadata.labels));
    if (selected.length === 0) return [`Service/${name}: selects no pod`];
    const open = selected.flatMap(({ template }) => template.spec.containers.flatMap(({ ports }) => ports));
    return ports
      .filter(
        ({ targetPort }) =>
          !open.some((port) => targetPort === port.name || targetPort === port.containerPort),
      )
      .map(({ targetPort }) => `Service/${name}: leads to the port ${targetPort}, which no pod has`);
  });
}

const DeploymentSpec = z.object({
  replicas: z.number().optional(),
  strategy: z.object({
    type: z.string(),
    rollingUpdate: z.object({ maxUnavailable: z.unknown() }).optional(),
  }),
});

/** A service on SQLite has one replica and never two at a time; others are updated without a gap. */
function replicaFindings(objects: readonly KubernetesObject[]): string[] {
  const scaled = new Set(
    ofKind(objects, "HorizontalPodAutoscaler").map(
      ({ spec }) =>
        z.object({ scaleTargetRef: z.object({ name: z.string() }) }).parse(spec).scaleTargetRef.name,
    ),
  );
  return ofKind(objects, "Deployment").flatMap((object) => {
    const { name } = object.metadata;
    const { replicas, strategy } = DeploymentSpec.parse(object.spec);
    const alone = workloadsOf([object]).some(({ template }) =>
      keepsSqlite(template.spec.containers, objects),
    );
    const findings: string[] = [];
    if (alone && (replicas !== 1 || scaled.has(name))) findings.push("runs SQLite in more than one replica");
    if (alone && strategy.type !== "Recreate") findings.push("runs SQLite twice during an update");
    if (!alone && strategy.rollingUpdate?.maxUnavailable !== 0) findings.push("has a gap during an update");
    if (replicas === undefined && !scaled.has(name))
      findings.push("says nowhere how many replicas there are");
    return findings.map((finding) => `Deployment/${name}: ${finding}`);
  });
}

function keepsSqlite(containers: readonly Container[], objects: readonly KubernetesObject[]): boolean {
  return containers.some(({ envFrom }) =>
    envFrom.some(
      ({ configMapRef }) =>
        configMapRef && configMapData(objects, configMapRef.name).STORE_URL?.startsWith("sqlite:"),
    ),
  );
}

/** No Secret has content, and nothing else looks like a secret, since manifests are committed. */
function secretFindings(objects: readonly KubernetesObject[]): string[] {
  return objects.flatMap((object) => {
    const name = `${object.kind}/${object.metadata.name}`;
    const findings: string[] = [];
    if (object.kind === "Secret" && (object.data !== undefined || object.stringData !== undefined)) {
      findings.push(`${name}: a Secret with content is committed`);
    }
    if (textsOf(object).some((text) => secretLooks.some((looks) => looks.test(text)))) {
      findings.push(`${name}: holds what looks like a secret`);
    }
    const literals = workloadsOf([object]).flatMap(({ template }) =>
      template.spec.containers.flatMap(({ env }) => env),
    );
    for (const { name: variable, value } of literals) {
      if (
        value !== undefined &&
        /PASSWORD|SEED|TOKEN|ENCRYPTION_KEY/.test(variable) &&
        !value.includes("$(")
      ) {
        findings.push(`${name}: ${variable} stands there in clear`);
      }
    }
    return findings;
  });
}

function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsOf);
}

function selects(
  selector: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>>,
): boolean {
  const wanted = Object.entries(selector);
  return wanted.length > 0 && wanted.every(([label, value]) => labels[label] === value);
}
