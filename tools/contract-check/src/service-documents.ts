import { mesh, type ServiceName, serviceNames, storeOwners } from "@devmesh/contracts/mesh";
import { release } from "@devmesh/contracts/release";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import {
  brokerPasswordVariables,
  mongodbPasswordVariable,
} from "@devmesh/launcher/deployment/deployment-secrets";

const header = "# Made by `npm run generate` from libs/contracts/src/mesh.ts.\n";
const declarationOf = (service: ServiceName): ServiceDeclaration => mesh[service];

/**
 * Files of deployments that follow from the services of the mesh, by path below the root. `exists` says which files
 * are there: what a service adds to its manifests by hand is included.
 */
export function serviceDocuments(exists: (path: string) => boolean): Readonly<Record<string, string>> {
  const base = ["mesh", "bootstrap", ...serviceNames].map((folder) => `  - ${folder}\n`);
  return {
    "k8s/base/kustomization.yaml": `${header}${kustomization}resources:
${base.join("")}labels:
  - pairs:
      app.kubernetes.io/part-of: devmesh
    includeTemplates: true
`,
    "k8s/components/mongodb-store/kustomization.yaml": mongodbStore(),
    "k8s/components/sqlite/kustomization.yaml": sqlite(),
    "k8s/components/sqlite/volumes.yaml": header + storeOwners.map(volumeClaim).join("---\n"),
    ...Object.fromEntries(serviceNames.flatMap((service) => filesOf(service, exists))),
  };
}

function filesOf(service: ServiceName, exists: (path: string) => boolean): [string, string][] {
  const policy = networkPolicy(service);
  const folder = `k8s/base/${service}`;
  return [
    [
      `services/${service}/tsconfig.json`,
      `{ "extends": "../../tsconfig.base.json", "include": ["src", "test"] }\n`,
    ],
    [`services/${service}/turbo.json`, `{ "extends": ["//"], "tags": ["service"] }\n`],
    [
      `${folder}/kustomization.yaml`,
      manifests(service, policy !== null, (file) => exists(`${folder}/${file}`)),
    ],
    ...(policy === null ? [] : [[`${folder}/network-policy.yaml`, policy] satisfies [string, string]]),
  ];
}

const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
`;
const component = `apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
`;

/** `k8s/base/<service>/kustomization.yaml`: the shape of every service, and the parts that are written by hand. */
function manifests(service: ServiceName, hasPolicy: boolean, exists: (file: string) => boolean): string {
  const { memoryMib, httpPort } = declarationOf(service);
  const ofContainer = "/spec/template/spec/containers/0";
  const lines = (...all: readonly (string | false)[]) => all.filter((line) => line !== false).join("\n");
  return lines(
    `${header}# Beside it by hand, where needed: settings.env, and deployment.yaml that changes the Deployment.`,
    `${kustomization}resources:`,
    "  - ../service",
    hasPolicy && "  - network-policy.yaml",
    `labels:
  - pairs:
      app.kubernetes.io/name: ${service}
    includeSelectors: true
    includeTemplates: true
images:
  - name: devmesh-service
    newName: devmesh-${service}
configMapGenerator:
  - name: ${service}`,
    httpPort !== null && `    literals:\n      - HOST=0.0.0.0\n      - PORT=${httpPort}`,
    exists("settings.env") && "    envs:\n      - settings.env",
    `patches:
  - target:
      name: service
    options:
      allowNameChange: true
    patch: |-
      - { op: replace, path: /metadata/name, value: ${service} }
  - target:
      kind: HorizontalPodAutoscaler
    patch: |-
      - { op: replace, path: /spec/scaleTargetRef/name, value: ${service} }
  - target:
      kind: Deployment
    patch: |-
      - { op: replace, path: /spec/template/spec/serviceAccountName, value: ${service} }
      - { op: replace, path: ${ofContainer}/envFrom/1/configMapRef/name, value: ${service} }
      - { op: replace, path: ${ofContainer}/envFrom/2/secretRef/name, value: ${service} }
      - { op: replace, path: ${ofContainer}/resources/limits/memory, value: ${memoryMib}Mi }`,
    httpPort !== null &&
      `      - { op: add, path: ${ofContainer}/ports/-, value: { name: http, containerPort: ${httpPort} } }
  - target:
      kind: Service
    patch: |-
      - { op: add, path: /spec/ports/-, value: { name: http, port: 80, targetPort: http } }`,
    exists("deployment.yaml") && "  - path: deployment.yaml\n    target:\n      kind: Deployment",
    "",
  );
}

/** Without private, shared and special networks of IPv4 and Azure's host; of IPv6 only global unicast is public. */
const toPublic = `    - to:
        - ipBlock:
            cidr: 0.0.0.0/0
            except:
${[
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
]
  .map((network) => `              - ${network}\n`)
  .join("")}        - ipBlock:
            cidr: 2000::/3
`;

/** What a service may reach besides NATS, and who reaches it besides Prometheus; null: nothing and nobody. */
function networkPolicy(service: ServiceName): string | null {
  const { httpPort, reaches, rights } = declarationOf(service);
  const mqtt = rights.includes("device_topics");
  const ingress = `  ingress:
    - from:
        - namespaceSelector:
            matchLabels:
              kubernetes.io/metadata.name: ingress-nginx
      ports:
        - port: ${httpPort}
`;
  // No matchLabels, since the labels of the service would replace the name.
  const toMqtt = `    - to:
        - podSelector:
            matchExpressions:
              - { key: app.kubernetes.io/name, operator: In, values: [nats] }
      ports:
        - port: 8883
`;
  const outside =
    reaches === "public"
      ? toPublic
      : `    - ports:\n${reaches.map((port) => `        - port: ${port}\n`).join("")}`;
  const egress = [mqtt ? toMqtt : "", reaches.length > 0 ? outside : ""].join("");
  const types = [...(httpPort === null ? [] : ["Ingress"]), ...(egress === "" ? [] : ["Egress"])];
  if (types.length === 0) return null;
  return `${header}apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: ${service}
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: ${service}
  policyTypes: [${types.join(", ")}]
${httpPort === null ? "" : ingress}${egress === "" ? "" : `  egress:\n${egress}`}`;
}

function mongodbStore(): string {
  const patches = storeOwners.map(
    (service) => `  - target:
      kind: Deployment
      name: ${service}
    patch: |-
      - { op: add, path: /spec/template/spec/containers/0/envFrom/-, value: { secretRef: { name: ${service}-store } } }
`,
  );
  return `${header}# STORE_URL of each service that keeps data, from a separate Secret. For a MongoDB elsewhere \`npm run secrets\` makes it,
# and the network policy for its port.
${component}patches:
${patches.join("")}`;
}

function sqlite(): string {
  const settings = storeOwners.map(
    (service) => `  - name: ${service}
    behavior: merge
    literals:
      - STORE_URL=sqlite:/data/${service}.db
`,
  );
  const volumes = storeOwners.map(
    (service) => `  - target:
      kind: Deployment
      name: ${service}
    patch: |-
      - { op: add, path: /spec/template/spec/volumes/-, value: { name: data, persistentVolumeClaim: { claimName: ${service} } } }
`,
  );
  const names = `^(${storeOwners.join("|")})$`;
  return `${header}# SQLite on a volume: one replica of each service that keeps data, and never two at once.
${component}resources:
  - volumes.yaml
configMapGenerator:
${settings.join("")}patches:
  - path: store.yaml
    target:
      kind: Deployment
      name: ${names}
${volumes.join("")}  - target:
      kind: HorizontalPodAutoscaler
      name: ${names}
    patch: |-
      $patch: delete
      apiVersion: autoscaling/v2
      kind: HorizontalPodAutoscaler
      metadata:
        name: any
`;
}

function volumeClaim(service: ServiceName): string {
  return `apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: ${service}
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: ${declarationOf(service).store?.volumeGib}Gi
`;
}

/** Files with generated parts among what is written by hand. */
export const filesWithParts: readonly string[] = [
  ...["external", "external-mongodb", "production", "single"].map(
    (name) => `k8s/overlays/${name}/kustomization.yaml`,
  ),
  "k8s/components/mongodb/initiation.yaml",
  "k8s/components/mongodb/network-policy.yaml",
  "compose.yaml",
  "monitoring/rules.yaml",
  "monitoring/prometheus.yaml",
  "docs/architecture.md",
];

/** The lines of each part, by the name in the line before it. */
const parts: Readonly<Record<string, readonly string[]>> = {
  images: serviceNames.flatMap((service) => [
    `- name: devmesh-${service}`,
    `  newName: registry.example.com/devmesh-${service}`,
    `  newTag: ${release}`,
  ]),
  stores: storeOwners.map((service) => `- ${service}`),
  "passwords of stores": storeOwners.flatMap((service) => [
    `- name: ${mongodbPasswordVariable(service)}`,
    `  valueFrom: { secretKeyRef: { name: mongodb, key: ${service}-password } }`,
  ]),
  "users of MongoDB": storeOwners.map((service) => {
    const variable = mongodbPasswordVariable(service);
    return `${variable}: $\{${variable}:?}`;
  }),
  "users of the broker": [...brokerPasswordVariables.keys()].map(
    (variable) => `${variable}: '"$\{${variable}:?}"'`,
  ),
  "expected services": serviceNames.flatMap((service) => [
    "- record: devmesh:service_expected",
    "  expr: group by (namespace) (devmesh_readiness)",
    `  labels: { service: ${service} }`,
  ]),
  "services with a store": [
    `expr: devmesh_readiness{service=~"${storeOwners.join("|")}",check="service"} == 0`,
  ],
  targets: serviceNames.map((service) => `- ${service}:9090`),
  calls: [
    "```mermaid",
    "graph LR",
    ...serviceNames.flatMap((service) =>
      declarationOf(service).calls.map(({ contract }) => `  ${service} --> ${contract.service}`),
    ),
    "```",
  ],
};

const part = /^( *)(\S+ generated from mesh\.ts: (.+?)(?: -->)?\n)[\s\S]*?^( *\S+ end of generated)/gm;

/** A file with its generated parts, each between `generated from mesh.ts: NAME` and `end of generated` in a comment. */
export function withParts(text: string): string {
  return text.replaceAll(part, (_, indent: string, begin: string, name: string, end: string) => {
    const lines = parts[name];
    if (lines === undefined) throw new Error(`nothing is generated by the name "${name}"`);
    return `${indent}${begin}${lines.map((line) => `${indent}${line}\n`).join("")}${end}`;
  });
}
