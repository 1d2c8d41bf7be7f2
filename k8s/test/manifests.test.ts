import { execFile } from "node:child_process";
import { readFile, realpath, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { repository } from "@devmesh/launcher/mesh/service-process";
import { readEnv } from "@devmesh/service-kit/env";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { containerEnvironment, type SecretContents } from "../src/container-environment.ts";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { findKubernetesSchemas } from "../src/kubernetes-schemas.ts";
import {
  buildManifests,
  type Container,
  type KubernetesObject,
  overlays,
  workloadsOf,
} from "../src/manifest.ts";
import { makeOperatorSecrets } from "../src/operator-secrets.ts";
import { policyFindings } from "../src/policy.ts";
import { environmentSchema } from "../src/service-environments.ts";

const builder = await findGoProgram("kustomize", kustomize);
const schemas = builder === null ? null : await findKubernetesSchemas();
const withBuilder = builder === null ? describe.skip : describe;
const withSchemas = schemas === null ? test.skip : test;

/** The oldest version of Kubernetes that has all that is used, and the newest whose schemas are at hand. */
const kubernetesVersions = ["1.30.0", "1.37.0"];

/** Variables that Node reads itself. */
const ofNode = new Set(["NODE_EXTRA_CA_CERTS"]);

/**
 * What the tool makes for others: SQLite needs nothing of a database, and external servers are not configured here
 * up.
 */
const needless: Readonly<Record<(typeof overlays)[number], readonly string[]>> = {
  single: ["mongodb", "keys-store", "devices-store", "data-store"],
  production: [],
  external: ["nats", "mongodb"],
};

let secrets: SecretContents;
beforeAll(async () => {
  secrets = await makeOperatorSecrets();
});

/** The program of ours that a container runs, by its image; null for images of others. */
function programOf({ image, command }: Container): string | null {
  const service = /devmesh-(?<service>[a-z-]+):/.exec(image)?.groups?.service;
  if (service === undefined) return null;
  return command?.find((word) => word.endsWith("main.ts")) ?? `services/${service}/src/main.ts`;
}

withBuilder("the host of PUBLIC_URL in an overlay", () => {
  test.each(overlays)("%s is that of the Ingress and of the links in mails", async (overlay) => {
    await using folder = await tempFolder();
    const manifests = join(repository, "k8s");
    const text = await readFile(join(manifests, "overlays", overlay, "kustomization.yaml"), "utf8");
    const moved = text
      .replaceAll("../../", `${relative(await realpath(folder.path), manifests)}/`)
      .replace("PUBLIC_URL=https://devmesh.example.com", "PUBLIC_URL=https://things.example.org");
    await writeFile(join(folder.path, "kustomization.yaml"), moved);
    const objects = await buildManifests(builder ?? "", relative(manifests, folder.path));
    const built = JSON.stringify(objects);
    expect(built.match(/"https:\/\/things\.example\.org"/g)).toHaveLength(2);
    expect(built.match(/"things\.example\.org"/g)).toHaveLength(2);
    expect(built).not.toContain("devmesh.example.com");
  });
});

withBuilder("the liveness probe of nats-server", () => {
  const run = promisify(execFile);
  const header = "Filesystem 1024-blocks Used Available Capacity Mounted on";

  /** Whether the probe passes where the server answers so and `/data` has so much room, in KB. */
  async function passes(overlay: (typeof overlays)[number], isHealthy: boolean, freeKb: number) {
    await using folder = await tempFolder();
    const asked = join(folder.path, "asked");
    const program = async (name: string, body: string) =>
      writeFile(join(folder.path, name), `#!/bin/sh\n${body}\n`, { mode: 0o700 });
    await program("wget", `for url; do :; done; echo "$url" > ${asked}; exit ${isHealthy ? 0 : 1}`);
    await program("df", `echo "${header}"; echo "/dev/sda 20000000 1 ${freeKb} 1% /data"`);
    const nats = workloadsOf(await buildManifests(builder ?? "", `overlays/${overlay}`)).find(
      ({ name }) => name === "nats",
    );
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
  ] as const)("of %s restarts it after a write error once there is room", async (overlay, asked) => {
    expect(await passes(overlay, true, 20_000)).toEqual({ passes: true, asked });
    expect(await passes(overlay, false, 16_383)).toEqual({ passes: true, asked });
    expect(await passes(overlay, false, 16_384)).toEqual({ passes: false, asked });
  });
});

withBuilder("the manifests of", () => {
  describe.each(overlays)("%s", (overlay) => {
    let objects: readonly KubernetesObject[];
    beforeAll(async () => {
      objects = await buildManifests(builder ?? "", `overlays/${overlay}`);
    });

    withSchemas.each(kubernetesVersions)("fit the schemas of Kubernetes %s", async (version) => {
      expect(await schemas?.(objects, version)).toEqual([]);
    });

    test("keep to the policy", () => {
      // Which Secrets of the manifests the Job fills, and which the operator makes.
      const made = [...secrets.keys()].filter((name) => name !== "master-key");
      expect(policyFindings(objects, new Set(made))).toEqual([]);
    });

    test("give every program each variable that it needs, and none that it does not know", async () => {
      const programs = workloadsOf(objects).flatMap(({ name, template }) =>
        template.spec.containers.map((container) => ({ name, container, program: programOf(container) })),
      );
      const ours = programs.filter(({ program }) => program !== null);
      expect(ours.map(({ name }) => name).sort()).toEqual(
        ["bootstrap", "data", "devices", "gateway", "keys", "mailer", "rpc-bridge"].sort(),
      );
      for (const { name, container, program } of ours) {
        const schema = await environmentSchema(program ?? "");
        const env = containerEnvironment(container, objects, secrets, `${name}-7d4b9c6f5-x2x7q`);
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
      const text = JSON.stringify(objects);
      const isNamed = (name: string) =>
        new RegExp(`"(secretRef|secretKeyRef)":\\{[^}]*"name":"${name}"|"secretName":"${name}"`).test(text);
      const unused = [...secrets.keys()].filter((name) => !isNamed(name));
      expect(unused).toEqual(needless[overlay]);
    });
  });
});
