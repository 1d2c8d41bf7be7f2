import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import type { ServiceName } from "@devmesh/contracts/mesh";
import { serviceNames } from "@devmesh/contracts/mesh";
import { eventually } from "@devmesh/testkit/eventually";
import { natsServerBinary } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type Mesh, startMesh } from "../../src/mesh/mesh.ts";
import { readMeshFile } from "../../src/mesh/mesh-file.ts";
import { meshSettings } from "../../src/mesh/settings.ts";
import { childRegistry } from "../../src/process/child-registry.ts";
import { commandLineOf } from "../../src/process/command-line.ts";
import { writeFakeServices } from "./fake-services.ts";

const children = childRegistry();
const never = new AbortController().signal;
let folder: Awaited<ReturnType<typeof tempFolder>>;
let repository: string;
let logged: string[];
let warned: string[];
beforeEach(async () => {
  folder = await tempFolder();
  repository = join(folder.path, "repository");
  await writeFakeServices(repository);
  logged = [];
  warned = [];
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}

async function environment(name = "data"): Promise<NodeJS.ProcessEnv> {
  const [http, mqtt, nats] = await freePorts(3);
  return {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DATA_DIR: join(folder.path, name),
    PORT: String(http),
    MQTT_PORT: String(mqtt),
    NATS_PORT: String(nats),
    STOPPED: join(folder.path, `${name}-stopped`),
  };
}

function start(env: NodeJS.ProcessEnv, without: ServiceName[] = [], signal = never): Promise<Mesh> {
  return startMesh(
    {
      settings: meshSettings(env),
      env,
      repository,
      bundles: null,
      findNatsServer: natsServerBinary,
      without: new Set(without),
      children,
      terminal: { log: (sentence) => logged.push(sentence), warn: (line) => warned.push(line) },
    },
    signal,
  );
}

async function parts(env: NodeJS.ProcessEnv) {
  const mesh = await readMeshFile(join(env.DATA_DIR ?? "", "mesh.json"));
  if (!mesh) throw new Error("there is no mesh.json");
  return mesh;
}

/** Whether any process of this mesh is left, by the ids that were known while it ran. */
async function survivors(pids: readonly number[]): Promise<string[]> {
  const lines = await Promise.all(pids.map((pid) => commandLineOf(pid)));
  return lines.filter((line) => line !== null);
}

function pidsOf({ nats_server, services }: Awaited<ReturnType<typeof parts>>): number[] {
  return [...(nats_server ? [nats_server.pid] : []), ...Object.values(services).map(({ pid }) => pid)];
}

describe("a mesh", () => {
  test("starts nats-server and every service, tells others where they are, and stops the gateway first", async () => {
    const env = await environment();
    const mesh = await start(env);
    const running = await parts(env);
    expect(Object.keys(running.services).sort()).toEqual([...serviceNames].sort());
    expect(running.url).toBe(`http://127.0.0.1:${env.PORT}`);
    expect(running.mqtt_public_url).toBe(`mqtt://127.0.0.1:${env.MQTT_PORT}`);
    for (const [service, { pid }] of Object.entries(running.services)) {
      expect(await commandLineOf(pid)).toContain(`services/${service}/src/main.ts`);
    }
    await mesh.stop();
    expect(await survivors(pidsOf(running))).toEqual([]);
    expect(existsSync(join(mesh.folder.path, "mesh.json"))).toBe(false);
    const stopped = (await readFile(env.STOPPED ?? "", "utf8")).trim().split("\n");
    expect(stopped[0]).toBe("gateway");
    expect(stopped).toHaveLength(serviceNames.length);
  });

  test("keeps its secrets in files of mode 0600 and out of command lines, mesh.json and logs", async () => {
    const env = await environment();
    const mesh = await start(env);
    const running = await parts(env);
    const { folder: data } = mesh;
    for (const file of [data.installation, data.brokerConfig, data.meshFile]) {
      expect((await stat(file)).mode & 0o777).toBe(0o600);
    }
    const installation = JSON.parse(await readFile(data.installation, "utf8"));
    const secrets = [
      ...Object.values<string>(installation.passwords),
      installation.issuer.seed,
      installation.key_encryption_key,
    ];
    const visible = [
      await readFile(data.meshFile, "utf8"),
      await readFile(data.logOf("nats-server"), "utf8"),
      ...(await survivors(pidsOf(running))),
      ...logged,
      ...warned,
    ].join("\n");
    await mesh.stop();
    expect(secrets.filter((secret) => visible.includes(secret))).toEqual([]);
  });

  test("starts a service again that died, and nats-server too, and names them", async () => {
    const env = await environment();
    const mesh = await start(env);
    const before = await parts(env);
    process.kill(before.services.data?.pid ?? 0, "SIGKILL");
    process.kill(before.nats_server?.pid ?? 0, "SIGKILL");
    await eventually(
      () => logged.includes("data is ready again.") && logged.includes("nats-server is ready again."),
    );
    const after = await parts(env);
    await mesh.stop();
    expect(logged).toContain("data was killed (SIGKILL); it is started again in 1 s.");
    expect(logged).toContain("nats-server was killed (SIGKILL); it is started again at once.");
    expect(after.services.data?.pid).not.toBe(before.services.data?.pid);
    expect(after.nats_server?.pid).not.toBe(before.nats_server?.pid);
    expect(after.services.keys).toEqual(before.services.keys);
  });

  test("leaves out the services that somebody else runs", async () => {
    const env = await environment();
    const mesh = await start(env, ["data", "mailer"]);
    const running = await parts(env);
    await mesh.stop();
    const others = serviceNames.filter((name) => name !== "data" && name !== "mailer");
    expect(Object.keys(running.services).sort()).toEqual(others.sort());
  });

  test("runs beside another one, but not in the same folder", async () => {
    const first = await environment("first");
    const second = await environment("second");
    const meshes = await Promise.all([start(first), start(second)]);
    await expect(start({ ...(await environment()), DATA_DIR: first.DATA_DIR })).rejects.toThrow(
      /first belongs to a mesh that runs already.*DATA_DIR/,
    );
    await Promise.all(meshes.map((mesh) => mesh.stop()));
  });
});

describe("a mesh that cannot start says so in one sentence and leaves nothing running", () => {
  async function failure(env: NodeJS.ProcessEnv): Promise<string> {
    const { message } = await start(env).then(
      () => new Error("it started"),
      (error: Error) => error,
    );
    expect(existsSync(join(env.DATA_DIR ?? "", "mesh.json"))).toBe(false);
    const pid = await readFile(join(env.DATA_DIR ?? "", "nats-server.pid"), "utf8").catch(() => "");
    expect(await survivors(pid ? [Number(pid)] : [])).toEqual([]);
    return message;
  }

  test("when a port is in use", async () => {
    const env = await environment();
    const other = createServer().listen(Number(env.MQTT_PORT), "127.0.0.1");
    await once(other, "listening");
    expect(await failure(env)).toBe(`Port ${env.MQTT_PORT} is in use already; set MQTT_PORT to another one.`);
    await once(other.close(), "close");
  });

  test("when a service says why it failed", async () => {
    const env = { ...(await environment()), FAIL: "devices" };
    expect(await failure(env)).toBe("devices could not start: the store is of a newer version.");
  });

  test("which what the other services warn of when they are ended does not bury", async () => {
    const env = {
      ...(await environment()),
      FAIL: "devices",
      LOUD: "mailer",
      LOUD_RUNS: join(folder.path, "loud"),
    };
    expect(await failure(env)).toBe("devices could not start: the store is of a newer version.");
    expect(await readFile(join(folder.path, "data", "logs", "mailer.log"), "utf8")).toContain(
      "the bus is closed",
    );
    expect(warned).toEqual([]);
  });

  test("when a service ends without a word", async () => {
    const env = { ...(await environment()), SILENT: "keys" };
    expect(await failure(env)).toBe("keys could not start: TypeError: no such thing.");
  });

  test("when nothing answers at NATS_URL", async () => {
    const env = { ...(await environment()), NATS_URL: "nats://127.0.0.1:9" };
    const stop = AbortSignal.timeout(300);
    await expect(start(env, [], stop)).rejects.toThrow(/Nothing answers at nats:\/\/127\.0\.0\.1:9/);
  });

  test("when it is stopped while it starts", async () => {
    const env = await environment();
    const stop = new AbortController();
    const starting = start(env, [], stop.signal);
    await eventually(() => existsSync(join(env.DATA_DIR ?? "", "nats-server.pid")));
    stop.abort();
    await expect(starting).rejects.toThrow();
    const pid = Number(await readFile(join(env.DATA_DIR ?? "", "nats-server.pid"), "utf8").catch(() => "0"));
    expect(await survivors([pid])).toEqual([]);
  });
});
