import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile, realpath, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { serviceNames, storeOwners } from "@devmesh/contracts/mesh";
import { readEnv } from "@devmesh/service-kit/process/env";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { containerEnvironment, type SecretContents } from "../src/container-environment.ts";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import {
  buildManifests,
  type Container,
  type KubernetesObject,
  ofKind,
  overlays,
  type Workload,
  workloadsOf,
} from "../src/manifest.ts";
import { findKubernetesSchemas, findKubeScore } from "../src/manifest-checks.ts";
import { makeOperatorSecrets } from "../src/operator-secrets.ts";
import { environmentSchema } from "../src/service-environments.ts";

const builder = await findGoProgram("kustomize", kustomize);
const kubeScore = await findKubeScore();
const schemas = await findKubernetesSchemas();
const withBuilder = builder === null ? describe.skip : describe;
const withSchemas = schemas === null ? test.skip : test;
const withKubeScore = kubeScore === null ? test.skip : test;

/** The oldest version of Kubernetes that has all that is used, and the newest whose schemas are at hand. */
const kubernetesVersions = ["1.30", "1.37"];

/** Time of a service to close after its calls are done, in milliseconds (run-service). */
const CLOSING_MS = 5_000;

const ServiceSpec = z.object({
  selector: z.record(z.string(), z.string()),
  ports: z.array(z.object({ targetPort: z.union([z.string(), z.number()]) })),
});

/** Variables that Node reads itself. */
const ofNode = new Set(["NODE_EXTRA_CA_CERTS"]);

/** Secrets that an overlay does not use: SQLite needs no database, and external servers are not configured here. */
const needless: Readonly<Record<(typeof overlays)[number], readonly string[]>> = {
  single: ["mongodb", ...storeOwners.map((service) => `${service}-store`)],
  production: [],
  "external-mongodb": ["mongodb"],
  external: ["nats", "broker-log", "mongodb"],
};

/** Findings of kube-score: on one node every service has one replica, and one on SQLite stops for its update. */
const accepted: Readonly<Record<(typeof overlays)[number], readonly string[]>> = {
  single: [
    ...storeOwners.map((name) => `Deployment/${name}: deployment-strategy`),
    ...serviceNames.map((name) => `Deployment/${name}: deployment-replicas`),
  ].sort(),
  production: [],
  "external-mongodb": [],
  external: [],
};

/** A key of the product, the seed of an nkey, a password in a URL, a private key. */
const secretLooks = [
  /\b(mk|dk|ck|pk|dt)_[0-9A-Za-z]{32}\b/,
  /\bS[AUN][A-Z2-7]{56}\b/,
  /:\/\/[^/\s:@"]+:(?!\$[({])[^/\s@"]+@/,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
];

/** Members that name another object, and its kind. */
const references = new Map([
  ["serviceAccountName", "ServiceAccount"],
  ["configMap", "ConfigMap"],
  ["configMapRef", "ConfigMap"],
  ["configMapKeyRef", "ConfigMap"],
  ["secretName", "Secret"],
  ["secretRef", "Secret"],
  ["secretKeyRef", "Secret"],
  ["claimName", "PersistentVolumeClaim"],
]);

let secrets: SecretContents;
beforeAll(async () => {
  secrets = await makeOperatorSecrets();
});

/** The source of the program of ours that a container runs, by its image; null for images of others. */
function programOf({ image, command }: Container): string | null {
  const service = /devmesh-(?<service>[a-z-]+):/.exec(image)?.groups?.service;
  if (service === undefined) return null;
  const program = command?.find((word) => word.endsWith("main.js")) ?? "main.js";
  return `services/${service}/src/${program.replace(/\.js$/, ".ts")}`;
}

/** The containers of a pod, sidecars among them. */
function allContainers({ spec }: Workload["template"]): readonly Container[] {
  return [...spec.initContainers, ...spec.containers];
}

/** What objects refer to, such as `Secret/nats`. */
function referencesOf(objects: readonly KubernetesObject[]): ReadonlySet<string> {
  const found = new Set<string>();
  JSON.stringify(objects, (member, value) => {
    const kind = references.get(member);
    if (kind !== undefined) found.add(`${kind}/${typeof value === "string" ? value : value.name}`);
    return value;
  });
  return found;
}

withBuilder("the host of PUBLIC_URL in an overlay", () => {
  test.each(overlays)(
    "%s is that of the Ingress, of the links in messages, of downloads and of events",
    async (overlay) => {
      await using folder = await tempFolder();
      const manifests = join(repository, "k8s");
      const text = await readFile(join(manifests, "overlays", overlay, "kustomization.yaml"), "utf8");
      const moved = text
        .replaceAll("../../", `${relative(await realpath(folder.path), manifests)}/`)
        .replace("PUBLIC_URL=https://devmesh.example.com", "PUBLIC_URL=https://things.example.org");
      await writeFile(join(folder.path, "kustomization.yaml"), moved);
      const objects = await buildManifests(builder ?? "", relative(manifests, folder.path));
      const built = JSON.stringify(objects);
      expect(built.match(/"https:\/\/things\.example\.org"/g)).toHaveLength(5);
      expect(built.match(/"things\.example\.org"/g)).toHaveLength(2);
      expect(built).not.toContain("devmesh.example.com");
    },
  );
});

withBuilder("the liveness probe of nats-server", () => {
  const run = promisify(execFile);
  const header = "Filesystem 1024-blocks Used Available Capacity Mounted on";

  /** Whether the probe passes where the server answers so and `/data` has so much room, in KB. */
  async function passes(nats: Workload | undefined, isHealthy: boolean, freeKb: number) {
    await using folder = await tempFolder();
    const asked = join(folder.path, "asked");
    const program = async (name: string, body: string) =>
      writeFile(join(folder.path, name), `#!/bin/sh\n${body}\n`, { mode: 0o700 });
    await program("wget", `for url; do :; done; echo "$url" > ${asked}; exit ${isHealthy ? 0 : 1}`);
    await program("df", `echo "${header}"; echo "/dev/sda 20000000 1 ${freeKb} 1% /data"`);
    const [container] = nats?.template.spec.containers ?? [];
    const [command = "", ...args] = container?.livenessProbe?.exec?.command ?? [];
    const LIVENESS = container?.env?.find(({ name }) => name === "LIVENESS")?.value;
    const env = { PATH: `${folder.path}:${process.env.PATH}`, LIVENESS };
    const outcome = await run(command, args, { env }).then(
      () => true,
      () => false,
    );
    return { passes: outcome, asked: (await readFile(asked, "utf8")).trim() };
  }

  test.each([
    ["single", "http://127.0.0.1:8222/healthz?"],
    ["production", "http://127.0.0.1:8222/healthz?js-enabled-only=true"],
    ["external-mongodb", "http://127.0.0.1:8222/healthz?js-enabled-only=true"],
  ] as const)("of %s restarts it after a write error once there is room", async (overlay, asked) => {
    const workloads = workloadsOf(await buildManifests(builder ?? "", `overlays/${overlay}`));
    const nats = workloads.find(({ name }) => name === "nats");
    expect(await passes(nats, true, 20_000)).toEqual({ passes: true, asked });
    expect(await passes(nats, false, 16_383)).toEqual({ passes: true, asked });
    expect(await passes(nats, false, 16_384)).toEqual({ passes: false, asked });
  });
});

withBuilder("the end of nats-server", () => {
  test("waits until a busy server has begun lame duck mode, which SIGTERM does not cut short", async () => {
    const workloads = workloadsOf(await buildManifests(builder ?? "", "overlays/production"));
    const nats = workloads.find(({ name }) => name === "nats");
    const [command = "", ...args] =
      nats?.template.spec.containers[0]?.lifecycle?.preStop?.exec?.command ?? [];
    await using server = await startNatsServer();
    await using folder = await tempFolder();
    const program = async (name: string, body: string) =>
      writeFile(join(folder.path, name), `#!/bin/sh\n${body}\n`, { mode: 0o700 });
    await program("nats-server", `[ "$*" = "--signal ldm=1" ] && kill -USR2 ${server.pid}`);
    const connecting = `require("node:net").connect(${server.port})`;
    const exits = `.on("connect", () => process.exit(0)).on("error", () => process.exit(1))`;
    await program("nc", `exec '${process.execPath}' -e '${connecting}${exits}'`);
    // A server without a client ends at once in lame duck mode.
    const client = connect(server.port, "127.0.0.1");
    await once(client, "data");
    client.write("CONNECT {}\r\nPING\r\n");
    await once(client, "data");

    process.kill(server.pid, "SIGSTOP");
    let waited = false;
    const env = { PATH: `${folder.path}:${process.env.PATH}` };
    const waiting = promisify(execFile)(command, args, { env }).then(() => {
      waited = true;
    });
    await sleep(300);
    expect(waited).toBe(false);
    process.kill(server.pid, "SIGCONT");
    await waiting;
    process.kill(server.pid, "SIGTERM");
    await eventually(() => server.log().includes('Trapped "terminated" signal'));
    expect(server.log()).not.toContain("Initiating Shutdown");
    client.destroy();
  });
});

test("kube-score and the schemas find what is wrong", async () => {
  const labels = { app: "careless" };
  const spec = { gracePeriod: 1, containers: [{ name: "careless", image: "careless" }] };
  const careless = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "careless" },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
  const unknown = { apiVersion: "devmesh.example.com/v1", kind: "Mesh", metadata: { name: "mine" } };
  if (kubeScore !== null)
    expect(await kubeScore([careless])).toEqual(
      expect.arrayContaining(
        [
          "container-image-tag",
          "container-resources",
          "container-seccomp-profile",
          "container-security-context-readonlyrootfilesystem",
          "deployment-has-poddisruptionbudget",
          "pod-networkpolicy",
        ].map((check) => `Deployment/careless: ${check}`),
      ),
    );
  if (schemas !== null)
    expect(await schemas("1.37")([careless, unknown])).toEqual([
      expect.stringContaining("'gracePeriod' was unexpected"),
      expect.stringContaining("Couldn't find schema for kind Mesh"),
    ]);
});

withBuilder("the manifests of", () => {
  describe.each(overlays)("%s", (overlay) => {
    let objects: readonly KubernetesObject[];
    let workloads: readonly Workload[];
    let servers: readonly Workload[];
    beforeAll(async () => {
      objects = await buildManifests(builder ?? "", `overlays/${overlay}`);
      workloads = workloadsOf(objects);
      servers = workloads.filter(({ kind }) => kind !== "Job");
    });

    const environmentOf = (name: string, container: Container) =>
      containerEnvironment(container, objects, secrets, `${name}-7d4b9c6f5-x2x7q`);

    withSchemas.each(kubernetesVersions)("fit the schemas of Kubernetes %s", async (version) => {
      expect(await schemas?.(version)(objects)).toEqual([]);
    });

    withKubeScore("have only the findings of kube-score that are accepted", async () => {
      expect((await kubeScore?.(objects))?.toSorted()).toEqual(accepted[overlay]);
    });

    test("confine every pod as the level `restricted` of PodSecurity wants it", () => {
      const least = {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      };
      for (const { name, template } of workloads) {
        const { securityContext, volumes, initContainers, containers, ...spec } = template.spec;
        expect({ name, ...securityContext }).toMatchObject({
          runAsNonRoot: true,
          seccompProfile: { type: "RuntimeDefault" },
        });
        expect(securityContext.runAsUser).toBeGreaterThan(0);
        expect(Object.keys(spec).filter((member) => member.startsWith("host"))).toEqual([]);
        const kinds = volumes.flatMap((volume) => Object.keys(volume).filter((member) => member !== "name"));
        expect(["configMap", "emptyDir", "persistentVolumeClaim", "secret"]).toEqual(
          expect.arrayContaining(kinds),
        );
        for (const container of containers)
          expect({ name, ...container.securityContext }).toEqual({ name, ...least });
        for (const { name: sidecar, securityContext: own, restartPolicy } of initContainers) {
          expect({ sidecar, restartPolicy, ...own }).toMatchObject({ restartPolicy: "Always", ...least });
          expect(own?.runAsUser).toBeGreaterThan(0);
        }
      }
    });

    test("give a token of a service account only to the Job that has a Role", () => {
      const withToken = workloads.filter(
        ({ template }) => template.spec.automountServiceAccountToken !== false,
      );
      expect(withToken.map(({ name }) => name)).toEqual(["bootstrap"]);
    });

    test("name no ServiceAccount, ConfigMap, Secret or volume that nobody makes", () => {
      const made = new Set(objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`));
      for (const name of secrets.keys()) if (name !== "master-key") made.add(`Secret/${name}`);
      expect([...referencesOf(objects)].filter((name) => !made.has(name))).toEqual([]);
      expect(workloads.filter(({ template }) => template.spec.serviceAccountName === undefined)).toEqual([]);
    });

    test("lead probes and Services to declared ports", () => {
      for (const { name, template } of servers) {
        for (const { ports, startupProbe, readinessProbe, livenessProbe } of template.spec.containers) {
          for (const probe of [startupProbe, readinessProbe, livenessProbe]) {
            expect({ name, probe }).toEqual({ name, probe: expect.anything() });
            const port = probe?.httpGet?.port ?? probe?.tcpSocket?.port ?? ports[0]?.name;
            expect(ports.map((declared) => declared.name)).toContain(port);
          }
        }
      }
      const declared = workloads.flatMap(({ template }) =>
        template.spec.containers.flatMap(({ ports }) =>
          ports.map((port) => `${template.metadata.labels["app.kubernetes.io/name"]}:${port.name}`),
        ),
      );
      for (const { spec } of ofKind(objects, "Service")) {
        const { selector, ports } = ServiceSpec.parse(spec);
        const name = selector["app.kubernetes.io/name"];
        expect(declared).toEqual(
          expect.arrayContaining(ports.map(({ targetPort }) => `${name}:${targetPort}`)),
        );
      }
    });

    test("let a service drain before it is killed", () => {
      for (const { name, template } of servers) {
        const { containers, terminationGracePeriodSeconds = 30 } = template.spec;
        for (const container of containers) {
          const { DRAIN_MS = "0" } = environmentOf(name, container);
          const killedAfterMs = terminationGracePeriodSeconds * 1_000;
          expect({ name, lasts: killedAfterMs > Number(DRAIN_MS) + CLOSING_MS }).toEqual({
            name,
            lasts: true,
          });
        }
      }
    });

    test("update services without a gap, but those on SQLite alone, and one process at a time", () => {
      const scaled = ofKind(objects, "HorizontalPodAutoscaler").map(({ metadata }) => metadata.name);
      for (const { name, template, object } of workloads.filter(({ kind }) => kind === "Deployment")) {
        const keepsSqlite = template.spec.containers.some((container) =>
          environmentOf(name, container).STORE_URL?.startsWith("sqlite:"),
        );
        if (keepsSqlite) {
          expect(object.spec).toMatchObject({ replicas: 1, strategy: { type: "Recreate" } });
          expect(scaled).not.toContain(name);
        } else {
          expect(object.spec).toMatchObject({ strategy: { rollingUpdate: { maxUnavailable: 0 } } });
        }
      }
    });

    test("hold no secret", () => {
      expect(ofKind(objects, "Secret").filter(({ data, stringData }) => data ?? stringData)).toEqual([]);
      const text = JSON.stringify(objects);
      for (const looks of secretLooks) expect(text).not.toMatch(looks);
      const inClear = workloads
        .flatMap(({ template }) => allContainers(template).flatMap(({ env }) => env))
        .filter(({ name }) => /PASSWORD|SEED|TOKEN|ENCRYPTION_KEY/.test(name))
        .filter(({ value }) => value !== undefined && !value.includes("$("));
      expect(inClear).toEqual([]);
    });

    test("give every program each variable that it needs, and none that it does not know", async () => {
      const programs = workloads.flatMap(({ name, template }) =>
        allContainers(template).map((container) => ({ name, container, program: programOf(container) })),
      );
      const ours = programs.filter(({ program }) => program !== null);
      const expected = ["bootstrap", ...(overlay === "external" ? [] : ["nats"]), ...serviceNames];
      expect(ours.map(({ name }) => name).sort()).toEqual(expected.sort());
      for (const { name, container, program } of ours) {
        const schema = await environmentSchema(program ?? "");
        const env = environmentOf(name, container);
        const reading = readEnv(schema, env);
        expect({ name, problems: "problems" in reading ? reading.problems : [] }).toEqual({
          name,
          problems: [],
        });
        const unknown = Object.keys(env).filter(
          (variable) => !(variable in schema.shape || ofNode.has(variable)),
        );
        expect({ name, unknown }).toEqual({ name, unknown: [] });
      }
    });

    test("name no Secret that the operator's tool makes in vain", () => {
      const named = referencesOf(objects);
      const unused = [...secrets.keys()].filter((name) => !named.has(`Secret/${name}`));
      expect(unused).toEqual(needless[overlay]);
    });
  });
});
