import { beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { findKubernetesSchemas } from "../src/kubernetes-schemas.ts";
import { buildManifests, type KubernetesObject } from "../src/manifest.ts";
import { makeOperatorSecrets } from "../src/operator-secrets.ts";
import { policyFindings } from "../src/policy.ts";

const builder = await findGoProgram("kustomize", kustomize);
const schemas = builder === null ? null : await findKubernetesSchemas();
const withBuilder = builder === null ? describe.skip : describe;
const withSchemas = schemas === null ? test.skip : test;

let sound: readonly KubernetesObject[];
let operatorSecrets: ReadonlySet<string>;

beforeAll(async () => {
  if (builder === null) return;
  sound = await buildManifests(builder, "overlays/production");
  operatorSecrets = new Set((await makeOperatorSecrets()).keys());
});

/** Objects and arrays alike. */
const Parent = z.custom<Record<string, unknown>>((value) => typeof value === "object" && value !== null);

/** A copy of the sound manifests in which the value at a path of one object is another; undefined removes it. */
function changed(name: string, path: string, value: unknown): KubernetesObject[] {
  const [kind, objectName] = name.split("/");
  const copy = structuredClone([...sound]);
  const object = copy.find((candidate) => candidate.kind === kind && candidate.metadata.name === objectName);
  const steps = path.split(".");
  const last = steps.pop() ?? "";
  const parent = steps.reduce((inner, step) => Parent.parse(inner[step]), Parent.parse(object));
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
}

const pod = "spec.template.spec";
const container = `${pod}.containers.0`;

/** What is changed, and what the policy has to say to it. */
const breaches: readonly [string, string, unknown, string][] = [
  ["Deployment/data", `${pod}.securityContext.runAsNonRoot`, undefined, "Deployment/data: may run as root"],
  ["Deployment/data", `${pod}.securityContext.runAsUser`, 0, "Deployment/data: names no user by number"],
  [
    "Deployment/data",
    `${pod}.securityContext.seccompProfile`,
    undefined,
    "Deployment/data: has no seccomp profile",
  ],
  ["Deployment/data", `${pod}.hostNetwork`, true, "Deployment/data: shares a namespace of the node"],
  [
    "Deployment/data",
    `${pod}.volumes`,
    [{ name: "node", hostPath: { path: "/" } }],
    "Deployment/data: mounts a path of the node",
  ],
  [
    "Deployment/data",
    `${pod}.automountServiceAccountToken`,
    undefined,
    "Deployment/data: has a service account's token that is good for nothing",
  ],
  [
    "Deployment/data",
    `${pod}.terminationGracePeriodSeconds`,
    30,
    "Deployment/data: is killed after 30 s, before it has drained in 35 s",
  ],
  [
    "Deployment/data",
    `${container}.securityContext.privileged`,
    true,
    "Deployment/data: container service: is privileged",
  ],
  [
    "Deployment/data",
    `${container}.securityContext.allowPrivilegeEscalation`,
    undefined,
    "Deployment/data: container service: may gain privileges",
  ],
  [
    "Deployment/data",
    `${container}.securityContext.readOnlyRootFilesystem`,
    false,
    "Deployment/data: container service: can write its root file system",
  ],
  [
    "Deployment/data",
    `${container}.securityContext.capabilities`,
    { drop: ["ALL"], add: ["NET_ADMIN"] },
    "Deployment/data: container service: adds capabilities",
  ],
  [
    "Deployment/data",
    `${container}.resources.limits.memory`,
    undefined,
    "Deployment/data: container service: has no memory among its limits",
  ],
  [
    "Deployment/data",
    `${container}.livenessProbe`,
    undefined,
    "Deployment/data: container service: has no livenessProbe",
  ],
  [
    "Deployment/data",
    `${container}.livenessProbe.httpGet.port`,
    9999,
    "Deployment/data: container service: is probed on the port 9999, which it does not declare",
  ],
  [
    "Deployment/data",
    `${container}.image`,
    "devmesh-data",
    "Deployment/data: container service: has no pinned image",
  ],
  [
    "Deployment/data",
    `${container}.image`,
    "registry:5000/devmesh-data:latest",
    "Deployment/data: container service: has no pinned image",
  ],
  [
    "Deployment/data",
    `${pod}.serviceAccountName`,
    "nobody",
    "Deployment/data: names the ServiceAccount nobody, which nobody makes",
  ],
  [
    "Deployment/data",
    `${container}.envFrom.2.secretRef.name`,
    "elsewhere",
    "Deployment/data: names the Secret elsewhere, which nobody makes",
  ],
  [
    "PodDisruptionBudget/nats",
    "spec.selector.matchLabels",
    { "app.kubernetes.io/name": "other" },
    "StatefulSet/nats: no PodDisruptionBudget selects its pods",
  ],
  [
    "NetworkPolicy/default-deny",
    "spec.egress",
    [{}],
    "Job/bootstrap: no NetworkPolicy denies its pods what is not allowed",
  ],
  [
    "Service/gateway",
    "spec.ports.1.targetPort",
    "web",
    "Service/gateway: leads to the port web, which no pod has",
  ],
  ["Service/gateway", "spec.selector", { app: "web" }, "Service/gateway: selects no pod"],
  [
    "Deployment/data",
    "spec.strategy.rollingUpdate.maxUnavailable",
    1,
    "Deployment/data: has a gap during an update",
  ],
  [
    "Secret/master-key",
    "stringData",
    { MASTER_KEY: "x" },
    "Secret/master-key: a Secret with content is committed",
  ],
  [
    "Deployment/data",
    `${container}.env.0`,
    { name: "NATS_PASSWORD", value: "hunter2" },
    "Deployment/data: NATS_PASSWORD stands there in clear",
  ],
  [
    "Deployment/data",
    `${container}.env.0`,
    { name: "STORE_URL", value: "mongodb://data:hunter2@mongodb/data" },
    "Deployment/data: holds what looks like a secret",
  ],
];

withBuilder("the policy", () => {
  test("finds nothing amiss with sound manifests", () => {
    expect(policyFindings(sound, operatorSecrets)).toEqual([]);
  });

  test.each(breaches)("%s with another %s (%j): %s", (name, path, value, finding) => {
    expect(policyFindings(changed(name, path, value), operatorSecrets)).toContain(finding);
  });

  test("lets no store in SQLite run twice", () => {
    const config = sound.find(
      ({ kind, metadata }) => kind === "ConfigMap" && metadata.name.startsWith("data-"),
    );
    const objects = changed(`ConfigMap/${config?.metadata.name}`, "data.STORE_URL", "sqlite:/data/data.db");
    expect(policyFindings(objects, operatorSecrets)).toEqual([
      "Deployment/data: runs SQLite in more than one replica",
      "Deployment/data: runs SQLite twice during an update",
    ]);
  });
});

withSchemas(
  "the schemas refuse a member that Kubernetes does not know, and an object of no kind of its own",
  async () => {
    const objects = [
      ...changed("Deployment/data", `${pod}.terminationGracePeriod`, 45),
      { apiVersion: "devmesh.example.com/v1", kind: "Mesh", metadata: { name: "mine" } },
    ];
    expect(await schemas?.(objects, "1.37.0")).toEqual([
      expect.stringMatching(/^Deployment\/data: .*'terminationGracePeriod' was unexpected/),
      expect.stringMatching(/^Mesh\/mine: /),
    ]);
  },
);
