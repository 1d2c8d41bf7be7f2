import { chmod, mkdir, mkdtemp, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "@devmesh/launcher/mesh/service-process";
import { findNatsServer } from "@devmesh/launcher/nats-server/find-nats-server";
import { eventually } from "@devmesh/testkit/eventually";
import { findMongodb } from "@devmesh/testkit/mongodb";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { authorisedCertificate, foreignCertificate } from "@devmesh/testkit/test-certificate";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import type { SecretContents } from "../src/container-environment.ts";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { buildImage, type Image } from "../src/image.ts";
import { buildManifests, type KubernetesObject, type Workload, workloadsOf } from "../src/manifest.ts";
import { makeOperatorSecrets, masterKey } from "../src/operator-secrets.ts";
import { type Pod, type PodImage, startPod } from "../src/pod/pod.ts";
import { canRunPods, type PodNetwork, startPodNetwork } from "../src/pod/pod-network.ts";
import { startApiServer } from "./api-server.ts";

const services = ["gateway", "keys", "devices", "data", "rpc-bridge", "mailer"] as const;
const builder = await findGoProgram("kustomize", kustomize);
const mongodb = await findMongodb();
const withMongodb = mongodb === null ? test.skip : test;
const withPods = builder !== null && (await canRunPods()) ? describe : describe.skip;

/** Longest that all images take to build, and a mesh to come up, in milliseconds. */
const BUILD_MS = 10 * 60_000;
const MESH_MS = 3 * 60_000;

let folder: TempFolder;
const images = new Map<string, Image>();

beforeAll(async () => {
  folder = await tempFolder();
  // Containers run as other users.
  await chmod(folder.path, 0o755);
  for (const service of services) {
    const place = join(folder.path, "images", service);
    await mkdir(place, { recursive: true });
    images.set(service, await buildImage(service, place));
  }
}, BUILD_MS);

afterAll(async () => {
  await mongodb?.[Symbol.asyncDispose]();
  await folder?.remove();
});

function imageOf(service: string): Image {
  const image = images.get(service);
  if (image === undefined) throw new Error(`no image was built of ${service}`);
  return image;
}

/** Files of an image below `/app`, without what npm installed. */
async function ownFiles(image: Image): Promise<string[]> {
  const app = join(image.root, "app");
  const entries = await readdir(app, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(app.length + 1))
    .filter((path) => !path.startsWith("node_modules/"));
}

const Dependencies = z.object({
  dependencies: z.record(z.string(), z.string()).default({}),
  devDependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
});

async function dependenciesOf(packageFolder: string): Promise<z.infer<typeof Dependencies>> {
  return Dependencies.parse(JSON.parse(await readFile(join(packageFolder, "package.json"), "utf8")));
}

/** Bytes of all files below a folder. */
async function sizeOf(place: string): Promise<number> {
  const entries = await readdir(place, { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(async (entry) => (await stat(join(entry.parentPath, entry.name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

describe.each(services)("the image of %s", (service) => {
  test("holds its own source, that of the libraries it uses, and no other file of the repository", async () => {
    const expected = [
      /^package\.json$/,
      new RegExp(
        `^(services/${service}|libs/(contracts|service-kit|device-broker|store))/(src/.+|package\\.json)$`,
      ),
      ...(service === "gateway" ? [/^web\/dist\/[\w./-]+\.(html|js|css|svg)(\.br|\.gz)?$/] : []),
    ];
    const strange = (await ownFiles(imageOf(service))).filter(
      (path) => !expected.some((pattern) => pattern.test(path)),
    );
    expect(strange).toEqual([]);
    const tests = (await ownFiles(imageOf(service))).filter((path) =>
      /(^|\/)test(ing)?\/|\.test\.ts$/.test(path),
    );
    expect(tests).toEqual([]);
  });

  test("holds what runs in production and nothing of development, not even a Node", async () => {
    const app = join(imageOf(service).root, "app");
    const installed = new Set(
      (await readdir(join(app, "node_modules"), { recursive: true })).filter(
        (path) => !path.includes("/bin"),
      ),
    );
    const root = await dependenciesOf(repository);
    const own = await dependenciesOf(join(repository, "services", service));
    for (const name of Object.keys(own.dependencies)) expect(installed).toContain(name);
    const unwanted = { ...root.devDependencies, ...root.optionalDependencies, ...own.devDependencies };
    for (const name of [...Object.keys(unwanted), "@devmesh/scripts", "testcontainers"]) {
      if (!(name in own.dependencies) && !(await isNeeded(app, name))) expect(installed).not.toContain(name);
    }
    const others = services.filter((other) => other !== service).map((other) => `@devmesh/${other}`);
    for (const other of others) expect(installed).not.toContain(other);
  });

  test("stays below 80 MB", async () => {
    const bytes = await sizeOf(join(imageOf(service).root, "app"));
    process.stdout.write(`image of ${service}: ${(bytes / 1_000_000).toFixed(1)} MB beside its base\n`);
    expect(bytes).toBeLessThan(80_000_000);
  });

  test("runs as a user by number and by a pinned Node of the version that is developed with", () => {
    const { user, base, workdir, env, labels } = imageOf(service);
    expect(user).toMatch(/^[1-9]\d+:[1-9]\d+$/);
    expect(base).toMatch(/^node:24\.\d+\.\d+-[a-z]+-slim@sha256:[0-9a-f]{64}$/);
    expect({ workdir, service: env.SERVICE }).toEqual({ workdir: "/app", service });
    expect(labels["org.opencontainers.image.title"]).toBe(`devmesh-${service}`);
  });
});

/** Whether something that runs in production needs a package, too. */
async function isNeeded(app: string, name: string): Promise<boolean> {
  const lock = z
    .object({
      packages: z.record(
        z.string(),
        z.object({ dependencies: z.record(z.string(), z.string()).default({}) }),
      ),
    })
    .parse(JSON.parse(await readFile(join(app, "node_modules", ".package-lock.json"), "utf8")));
  return Object.values(lock.packages).some(({ dependencies }) => name in dependencies);
}

test("the image of the gateway holds the dashboard, built from the source", async () => {
  const files = await ownFiles(imageOf("gateway"));
  expect(files).toContain("web/dist/index.html");
  expect(files.filter((path) => /^web\/dist\/assets\/.+\.js$/.test(path)).length).toBeGreaterThan(0);
});

test("the Dockerfile takes the turbo that is developed with", async () => {
  const { devDependencies } = await dependenciesOf(repository);
  const dockerfile = await readFile(join(repository, "Dockerfile"), "utf8");
  expect(dockerfile).toContain(` turbo@${devDependencies.turbo}\n`);
});

/** What an overlay runs, with others' as far as it has none of that name. */
interface RunningOverlay extends AsyncDisposable {
  readonly network: PodNetwork;
  readonly pods: ReadonlyMap<string, Pod>;
  /** Starts the pod of a workload, under names of which the first is its own. */
  start(
    workload: string,
    names?: readonly [string, ...string[]],
    serviceAccount?: Readonly<Record<string, string>>,
  ): Promise<Pod>;
}

async function runOverlay(
  overlay: string,
  { beside = [], secrets }: { beside?: readonly string[]; secrets: SecretContents },
): Promise<RunningOverlay> {
  const place = await mkdtemp(join(folder.path, `${overlay}-`));
  await chmod(place, 0o755);
  const others: Readonly<Record<string, PodImage>> = {
    nats: await natsServerImage(),
    mongodb: {
      files: { "/opt/bin/docker-entrypoint.sh": mongodbEntrypoint },
      env: {},
      workdir: "/",
      command: [],
    },
  };
  const workloads = new Map<string, { workload: Workload; objects: readonly KubernetesObject[] }>();
  for (const name of [...beside, overlay]) {
    const objects = await buildManifests(builder ?? "", `overlays/${name}`);
    for (const workload of workloadsOf(objects)) workloads.set(workload.name, { workload, objects });
  }
  await using undo = new AsyncDisposableStack();
  const network = undo.use(await startPodNetwork(place));
  const pods = new Map<string, Pod>();
  const running = undo.move();
  return {
    network,
    pods,
    async start(name, names = [podNameOf(name), name], serviceAccount = {}) {
      const found = workloads.get(name);
      if (found === undefined) throw new Error(`there is no workload ${name}`);
      const podFolder = join(place, names[0]);
      await mkdir(podFolder);
      const image = others[name] ?? serviceImage(imageOf(name === "bootstrap" ? "keys" : name));
      const { workload, objects } = found;
      const options = { network, objects, secrets, image, folder: podFolder, names, serviceAccount };
      const pod = running.use(await startPod(workload, options));
      pods.set(names[0], pod);
      return pod;
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** In place of the entrypoint of MongoDB's image: prints its arguments. */
const mongodbEntrypoint = join(import.meta.dirname, "mongodb-entrypoint.sh");

function podNameOf(workload: string): string {
  return `${workload}-7d4b9c6f5-x2x7q`;
}

/** Asks the API of a gateway's pod from within its network. */
function apiOf(mesh: RunningOverlay): (path: string, body?: object) => Promise<unknown> {
  const gateway = mesh.pods.get(podNameOf("gateway"));
  if (gateway === undefined) throw new Error("the gateway was not started");
  return async (path, body) => {
    const posted =
      body === undefined
        ? []
        : ["--header=Content-Type: application/json", `--post-data=${JSON.stringify(body)}`];
    const asked = ["-q", "-O", "-", `--header=Authorization: Bearer ${masterKey}`, ...posted];
    return JSON.parse(await gateway.execute("wget", [...asked, `http://127.0.0.1:8080/api/v2${path}`]));
  };
}

function serviceImage({ root, env, workdir, command }: Image): PodImage {
  return {
    files: { [workdir]: join(root, workdir), "/opt/bin/node": process.execPath },
    env,
    workdir,
    command,
  };
}

async function natsServerImage(): Promise<PodImage> {
  const found = await findNatsServer({ env: { ...process.env, NATS_URL: undefined } });
  if (found.kind !== "binary") throw new Error("a test needs a nats-server of its own");
  return { files: { "/opt/bin/nats-server": found.path }, env: {}, workdir: "/", command: [] };
}

/** Waits until all three probes of a pod pass; throws with its log when they do not. */
async function expectHealthy(pod: Pod): Promise<void> {
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"] as const) {
    await eventually(() => pod.passes(probe), { withinMs: 90_000, everyMs: 250 }).catch((cause: unknown) => {
      throw new Error(`the ${probe} does not pass:\n${pod.log()}`, { cause });
    });
  }
}

/** A process as the manifests' security contexts ask for it. */
async function expectConfined(pod: Pod, uid: number): Promise<void> {
  const status = await readFile(`/proc/${pod.pid}/status`, "utf8");
  expect(status).toMatch(new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, "m"));
  expect(status).toMatch(/^CapBnd:\t0+$/m);
  expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  const mounts = await readFile(`/proc/${pod.pid}/mountinfo`, "utf8");
  expect(mounts).toMatch(/^\d+ \d+ \S+ \S+ \/ ro\b/m);
}

const Credentials = z.object({ token: z.string() });
const Routes = z.object({ routes: z.array(z.object({ remote_name: z.string() })) });

withPods("each container runs as a process, exactly as the manifests say", () => {
  let secrets: SecretContents;
  beforeAll(async () => {
    secrets = await makeOperatorSecrets();
  });

  test(
    "a whole mesh of the overlay single: probes, HTTP, MQTT with TLS, and an orderly end",
    async () => {
      await using mesh = await runOverlay("single", { secrets });
      const nats = await mesh.start("nats", ["nats-0", "nats"]);
      await expectHealthy(nats);
      for (const service of services) await mesh.start(service);
      for (const pod of mesh.pods.values()) await expectHealthy(pod);
      await expectConfined(nats, 1000);
      for (const [name, pod] of mesh.pods) if (name !== "nats-0") await expectConfined(pod, 10001);

      expect(
        await mesh.pods
          .get(podNameOf("gateway"))
          ?.execute("wget", ["-q", "-O", "-", "http://127.0.0.1:8080/"]),
      ).toMatch(/<script type="module"[^>]* src="\/assets\//);

      const ask = apiOf(mesh);
      const { token } = Credentials.parse(await ask("/devices", { id: "pump-1" }));
      const tlsCert = join(folder.path, "tls.crt");
      await writeFile(tlsCert, foreignCertificate.cert);
      const program = ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "device.ts")];
      for (const url of [`mqtts://${nats.address}:8883`, `wss://${nats.address}:8443/mqtt`]) {
        const said = await nats.execute(process.execPath, [...program, url, "pump-1", token, tlsCert]);
        expect({ url, said }).toEqual({ url, said: "acknowledged" });
      }
      await eventually(async () => {
        expect(await ask("/data?filter=db/pump-1/")).toMatchObject([
          { message: "21.5" },
          { message: "21.5" },
        ]);
        return true;
      });

      const [node, ...healthcheck] = imageOf("gateway").healthcheck;
      expect(node).toBe("node");
      await mesh.pods
        .get(podNameOf("gateway"))
        ?.execute("env", ["OPS_PORT=9090", process.execPath, ...healthcheck]);

      for (const [name, pod] of [...mesh.pods].reverse()) {
        const code = await pod.stop();
        expect({ name, code, log: code === 0 ? "" : pod.log() }).toEqual({ name, code: 0, log: "" });
      }
    },
    MESH_MS,
  );

  test(
    "the cluster of the overlay production finds together, and services without a store run on it",
    async () => {
      await using mesh = await runOverlay("production", { secrets });
      await startNatsCluster(mesh);
      for (const service of ["rpc-bridge", "mailer", "gateway"])
        await expectHealthy(await mesh.start(service));
      const asked = ["-q", "-O", "-", "http://127.0.0.1:8222/routez"];
      const { routes } = Routes.parse(
        JSON.parse((await mesh.pods.get("nats-0")?.execute("wget", asked)) ?? ""),
      );
      expect([...new Set(routes.map(({ remote_name }) => remote_name))].sort()).toEqual(["nats-1", "nats-2"]);
    },
    MESH_MS,
  );

  test.each([
    { member: "mongodb-0", root: "root" },
    { member: "mongodb-1", root: "nobody" },
  ])(
    "$member of the overlay production starts with the key of the replica set, and makes the user $root",
    async ({ member, root }) => {
      await using mesh = await runOverlay("production", { secrets });
      const pod = await mesh.start("mongodb", [member]);
      expect({ code: await pod.ended, log: pod.log() }).toEqual({
        code: 0,
        log: [
          "mongod --replSet rs0 --keyFile /tmp/member-key --bind_ip_all",
          `makes ${root}`,
          "key 400 of 999: true",
          "writes /data/db /data/configdb /tmp",
          "",
        ].join("\n"),
      });
    },
    MESH_MS,
  );

  withMongodb(
    "a whole mesh of the overlay external, on a NATS cluster and on MongoDB by URL",
    async () => {
      const url = new URL(mongodb?.url ?? "");
      await using databases = new AsyncDisposableStack();
      const stores = ["keys", "devices", "data"].map((service) => {
        const { storeUrl } = databases.use(mongodb?.newDatabase() ?? null) ?? { storeUrl: "" };
        return [
          `${service}-store`,
          { STORE_URL: storeUrl.replace(url.host, "mongodb.example.com:27017") },
        ] as const;
      });
      await using mesh = await runOverlay("external", {
        beside: ["production"],
        secrets: new Map([...secrets, ...stores]),
      });
      await startNatsCluster(mesh);
      await mesh.network.admit(["mongodb.example.com"], 27017, {
        host: url.hostname,
        port: Number(url.port),
      });
      for (const service of services) await mesh.start(service);
      for (const pod of mesh.pods.values()) await expectHealthy(pod);
      const ask = apiOf(mesh);
      await ask("/devices", { id: "pump-1" });
      expect(await ask("/devices")).toMatchObject([{ id: "pump-1", online: false }]);
    },
    MESH_MS,
  );

  test(
    "the Job that makes the first master key writes it by the API server",
    async () => {
      const path = "/api/v1/namespaces/devmesh/secrets/master-key";
      await using api = await startApiServer(path, "token-of-the-job");
      await using mesh = await runOverlay("single", { secrets });
      await mesh.network.admit(["kubernetes.default.svc"], 443, { host: "127.0.0.1", port: api.port });
      const job = await mesh.start("bootstrap", ["bootstrap-k4x7z"], {
        token: "token-of-the-job",
        namespace: "devmesh",
        "ca.crt": authorisedCertificate.authority,
      });
      expect({ code: await job.ended, log: job.log() }).toEqual({
        code: 0,
        log: "The first master key is in the Secret master-key.\n",
      });
      expect(api.secret()).toEqual({ MASTER_KEY: expect.stringMatching(/^mk_[0-9A-Za-z]{32}$/) });
    },
    MESH_MS,
  );
});

/** The three servers of the overlay production, also under the names that the overlay external knows. */
async function startNatsCluster(mesh: RunningOverlay): Promise<void> {
  for (const at of [0, 1, 2]) {
    const aliases = [`nats-${at}.nats-cluster`, `nats-${at}.example.com`, ...(at === 0 ? ["nats"] : [])];
    await mesh.start("nats", [`nats-${at}`, ...aliases]);
  }
  for (const pod of mesh.pods.values()) await expectHealthy(pod);
}
