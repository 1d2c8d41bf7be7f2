import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { storeOwners } from "@devmesh/contracts/mesh";
import { readMeshFile } from "@devmesh/supervisor/mesh/mesh-file";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import { freePort } from "@devmesh/testkit/free-port";
import { hasEnded, startProcess } from "@devmesh/testkit/process";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { buildManifests, ofKind, workloadsOf } from "../src/manifest.ts";
import { allowedTraffic } from "../src/traffic.ts";
import { filesByHand } from "./sample-service.ts";

const builder = await findGoProgram("kustomize", kustomize);
const withBuilder = builder === null ? test.skip : test;

/** Most files that a new service with a store may need by hand. */
const MAX_FILES = 16;

const notCopied = new Set(["node_modules", "dist", "coverage", ".git", ".turbo", ".data", ".test-results"]);

const JestResult = z.object({ testResults: z.array(z.object({ name: z.string() })) });

let folder: TempFolder;
/** A copy of the repository with the sample service. */
let copy: string;
let byHand: ReadonlyMap<string, string>;

/** Runs a program of the copy. Rejects with what it printed. */
async function run(...args: readonly string[]): Promise<string> {
  const options = { cwd: copy, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)(process.execPath, args, options).catch((cause) => {
    throw new Error(`${args.join(" ")}: ${cause.stdout}${cause.stderr}`, { cause });
  });
  return stdout;
}

const generate = "tools/contract-check/src/generate.ts";

beforeAll(async () => {
  folder = await tempFolder();
  copy = join(realpathSync(folder.path), "repository");
  cpSync(repository, copy, { recursive: true, filter: (path) => !notCopied.has(basename(path)) });
  byHand = filesByHand((path) => readFileSync(join(copy, path), "utf8"));
  for (const [path, text] of byHand) {
    mkdirSync(join(copy, dirname(path)), { recursive: true });
    writeFileSync(join(copy, path), text);
  }
  install();
  await run(generate);
}, 180_000);
afterAll(async () => await folder.remove());

/** What `npm install` would link: the packages of the copy, and all others from here. */
function install(): void {
  const link = (path: string, target: string) => {
    mkdirSync(join(copy, dirname(path)), { recursive: true });
    symlinkSync(target, join(copy, path));
  };
  for (const place of ["", "web", "clients/typescript", "services/webhooks"]) {
    const packages = join(place, "node_modules");
    for (const name of readdirSync(join(repository, packages)))
      if (name !== "@devmesh") link(join(packages, name), join(repository, packages, name));
  }
  for (const name of readdirSync(join(repository, "node_modules/@devmesh"))) {
    const place = relative(repository, realpathSync(join(repository, "node_modules/@devmesh", name)));
    link(`node_modules/@devmesh/${name}`, join(copy, place));
  }
  link("node_modules/@devmesh/auditor", join(copy, "services/auditor"));
}

describe("a new service with a store, added by the recipe of CONTRIBUTING.md", () => {
  test(`needs at most ${MAX_FILES} files by hand, each named in the recipe`, async () => {
    expect(byHand.size).toBeLessThanOrEqual(MAX_FILES);
    const guide = await readFile(join(repository, "CONTRIBUTING.md"), "utf8");
    const recipe = guide.slice(guide.indexOf("### A new service"), guide.indexOf("## Rules for code"));
    const named = [...recipe.matchAll(/^\| \d+ \| `([^`]+)`/gm)].map(([, path = ""]) => path);
    const generic = (path: string) =>
      path.replaceAll("auditor", "<name>").replaceAll("audit-store", "<what>-store");
    expect([...byHand.keys()].map(generic).sort()).toEqual(named.sort());
  });

  test("passes the type check of all packages and the check of generated files", async () => {
    await run("node_modules/typescript/bin/tsc", "--noEmit", "-p", "tsconfig.json");
    await run(generate, "--check");
  }, 300_000);

  test("becomes ready, and its store is in the backup", async () => {
    const data = join(folder.path, "data");
    const env = { ...process.env, NATS_URL: undefined, STORE_URL: undefined, DATA_DIR: data };
    const start = async () => {
      const [PORT, MQTT_PORT, NATS_PORT] = [await freePort(), await freePort(), await freePort()].map(String);
      const launch = ["tools/launcher/src/launch.ts", "--without", "gateway"];
      const started = startProcess(process.execPath, launch, {
        cwd: copy,
        env: { ...env, PORT, MQTT_PORT, NATS_PORT },
      });
      const isOver = () => started.output().includes("\nready ") || hasEnded(started.child);
      await eventually(isOver, { withinMs: 180_000 });
      return started;
    };
    // The first start bundles the services for seconds, in which another suite may take one of its ports.
    const first = await start();
    await using mesh = /Port \d+ is in use already/.test(first.output()) ? await start() : first;
    if (hasEnded(mesh.child)) throw new Error(mesh.output());
    const { auditor } = (await readMeshFile(join(data, "mesh.json")))?.services ?? {};
    expect((await fetch(`${auditor?.ops}/readyz`)).status).toBe(200);
    const target = join(folder.path, "backup");
    const options = { cwd: copy, env };
    await promisify(execFile)(process.execPath, ["tools/launcher/run.mjs", "backup", target], options);
    const owners = ["auditor", ...storeOwners].map((service) => `${service}.db`);
    expect(readdirSync(target).sort()).toEqual(owners.sort());
    const stored = new DatabaseSync(join(target, "auditor.db"), { readOnly: true });
    expect(stored.prepare("SELECT count(*) AS n FROM created").get()).toEqual({ n: 0 });
    stored.close();
    await mesh.end();
  }, 300_000);

  withBuilder(
    "has an image, a volume or a MongoDB, and traffic with nothing else in Kubernetes",
    async () => {
      const build = (overlay: string) =>
        buildManifests(builder ?? "", relative(join(repository, "k8s"), join(copy, "k8s/overlays", overlay)));
      const single = await build("single");
      const production = await build("production");
      for (const objects of [single, production]) {
        const deployment = workloadsOf(objects).find(({ name }) => name === "auditor");
        const [container] = deployment?.template.spec.containers ?? [];
        expect(container).toMatchObject({
          image: expect.stringMatching(/\/devmesh-auditor:\d/),
          resources: { limits: { memory: "256Mi" } },
        });
        const ownTraffic = allowedTraffic(objects).filter((line) => line.includes("auditor"));
        expect(ownTraffic).toEqual(
          [
            "auditor -> anywhere:6514",
            "auditor -> kube-system:53",
            "auditor -> nats:4222",
            "monitoring -> auditor:9090",
            ...(objects === production ? ["auditor -> mongodb:27017"] : []),
          ].sort(),
        );
      }
      expect(ofKind(single, "PersistentVolumeClaim")).toContainEqual(
        expect.objectContaining({
          metadata: expect.objectContaining({ name: "auditor" }),
          spec: expect.objectContaining({ resources: { requests: { storage: "3Gi" } } }),
        }),
      );
      const initiation = workloadsOf(production).find(({ name }) => name === "mongodb-initiation");
      expect(initiation?.template.spec.containers[0]?.env.map(({ name }) => name)).toContain(
        "MONGODB_PASSWORD_AUDITOR",
      );
    },
    120_000,
  );

  test("is scraped by Prometheus, which expects it", async () => {
    expect(await readFile(join(copy, "monitoring/prometheus.yaml"), "utf8")).toContain("- auditor:9090\n");
    const rules = await readFile(join(copy, "monitoring/prometheus-rule.yaml"), "utf8");
    expect(rules).toContain("labels: { service: auditor }");
    expect(rules).toMatch(/devmesh_readiness\{service=~"auditor\|/);
  });

  test("passes the tests that list the services", async () => {
    const files = [
      "k8s/test/(compose|overlay|traffic)",
      "tools/contract-check/test/(environment-tables|references)",
      "tools/launcher/test/.*print-secrets",
      "supervisor/test/.*(service-environment|store-backup)",
      "services/auditor/test/",
    ];
    const jest = ["node_modules/jest/bin/jest.js", "--config", "jest.config.js"];
    // One process for all: workers load the same modules again.
    const output = await run(...jest, "--rootDir", ".", "--runInBand", "--json", ...files);
    const ran = JestResult.parse(JSON.parse(output)).testResults.map(({ name }) => relative(copy, name));
    for (const file of files) expect(ran).toContainEqual(expect.stringMatching(file));
  }, 600_000);
});
