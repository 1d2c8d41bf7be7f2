import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseEnv, promisify } from "node:util";
import { mesh, type ServiceName, serviceNames, sidecars, storeOwners } from "@devmesh/contracts/mesh";
import { composeEnvironment, deploymentSecrets } from "@devmesh/launcher/deployment/deployment-secrets";
import { readEnv } from "@devmesh/service-kit/process/env";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { natsServerBinary } from "@devmesh/testkit/nats-server";
import { startProcess } from "@devmesh/testkit/process";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type ComposeService, readCompose, requiredVariables } from "../src/compose.ts";
import { composeConfig, findGoProgram } from "../src/go-program.ts";
import { environmentSchema } from "../src/service-environments.ts";

const reader = await findGoProgram("compose-config", composeConfig);
const withReader = reader === null ? describe.skip : describe;

const variants = [
  { name: "compose.yaml", files: ["compose.yaml"], published: ["gateway 8080", "proxy 1883"] },
  {
    name: "compose.yaml and compose.tls.yaml",
    files: ["compose.yaml", "compose.tls.yaml"],
    published: ["gateway 8080", "proxy 8883", "proxy 8443"],
  },
];
/** What the operator says besides the secrets, for TLS. */
const certificate = { MQTT_TLS_CERT: "/srv/tls/cert.pem", MQTT_TLS_KEY: "/srv/tls/key.pem" };
/** Runs once, as root, to hand a volume over. */
const helper = "volumes";

let folder: TempFolder;
let variables: NodeJS.Dict<string>;

beforeAll(async () => {
  folder = await tempFolder();
  variables = parseEnv(composeEnvironment(await deploymentSecrets(join(folder.path, "installation.json"))));
});

afterAll(async () => {
  await folder.remove();
});

test("the tool for secrets gives exactly the variables that compose.yaml asks for", async () => {
  expect(Object.keys(variables).sort()).toEqual(await requiredVariables(["compose.yaml"]));
  expect(Object.values(variables).filter((value) => !/^[A-Za-z0-9_+/=-]+$/.test(value ?? ""))).toEqual([]);
});

test("the same installation gives the same secrets again", async () => {
  const file = join(folder.path, "installation.json");
  expect(composeEnvironment(await deploymentSecrets(file))).toBe(
    composeEnvironment(await deploymentSecrets(file)),
  );
});

test("nats-server takes its configuration with the variables as compose.yaml quotes them", async () => {
  const binary = await natsServerBinary();
  const config = join(repository, "compose", "nats-server.conf");
  const quoted = Object.entries(variables).map(([name, value]) => [name, `"${value}"`]);
  const check = promisify(execFile)(binary, ["-t", "--config", config], {
    env: Object.fromEntries(quoted),
  });
  expect((await check).stderr).toContain("is valid");
  await expect(promisify(execFile)(binary, ["-t", "--config", config], { env: {} })).rejects.toThrow(
    /variable reference .* can not be found/i,
  );
});

describe("the health check of nats-server", () => {
  const okay = '{"status":"ok"}';
  const failed = `{"status":"unavailable","error":"JetStream stream 'MESH > EVENTS' write error: no space left on device"}`;

  /** Whether it passes, and whether it ends the server, at an answer of `/healthz` and with so much room, in KB. */
  async function check(answer: string, freeKb: number, ageS: number) {
    await using place = await tempFolder();
    await using server = startProcess("sleep", ["60"]);
    const program = (name: string, body: string) =>
      writeFile(join(place.path, name), `#!/bin/sh\n${body}\n`, { mode: 0o700 });
    await program("nc", `cat > ${place.path}/request; cat <<'END'\n${answer}\nEND`);
    await program("df", `printf 'Filesystem\\n/dev/sda 20000000 1 ${freeKb} 1%% /data\\n'`);
    // The age of the server: seconds since the start of the machine, less that of its own start.
    await program("cut", `case "$*" in *uptime*) echo ${ageS} ;; *) echo 0 ;; esac`);
    const env = { PATH: `${place.path}:${process.env.PATH}` };
    const script = join(repository, "compose", "nats-health.sh");
    const passes = await promisify(execFile)("sh", [script, String(server.child.pid)], { env }).then(
      () => true,
      () => false,
    );
    if (passes) return "healthy";
    const ended = await Promise.race([server.ended.then(() => true), sleep(300).then(() => false)]);
    return ended ? "ended" : "unhealthy";
  }

  test("ends it after a write error, once there is room, at most once a minute", async () => {
    expect(await check(okay, 0, 600)).toBe("healthy");
    expect(await check("", 20_000, 600)).toBe("unhealthy");
    expect(await check('{"status":"unavailable","error":"JetStream is recovering"}', 20_000, 600)).toBe(
      "unhealthy",
    );
    expect(await check(failed, 16_383, 600)).toBe("unhealthy");
    expect(await check(failed, 16_384, 59)).toBe("unhealthy");
    expect(await check(failed, 16_384, 60)).toBe("ended");
  });
});

withReader.each(variants)("$name", ({ name, files, published }) => {
  let services: Readonly<Record<string, ComposeService>>;
  beforeAll(async () => {
    const place = join(folder.path, name.replaceAll(" ", "-"));
    services = await readCompose(reader ?? "", files, { ...variables, ...certificate }, place);
  });

  test("publishes HTTP and MQTT and nothing else", () => {
    const open = Object.entries(services).flatMap(([service, { ports }]) =>
      ports.map(({ target }) => `${service} ${target}`),
    );
    expect(open.sort()).toEqual([...published].sort());
  });

  test("lets nobody reach MongoDB but who keeps data there", () => {
    const near = Object.entries(services).flatMap(([service, { networks }]) =>
      "store" in networks ? [service] : [],
    );
    expect(near.sort()).toEqual([...storeOwners, "mongodb"].sort());
    expect(Object.keys(services.mongodb?.networks ?? {})).toEqual(["store"]);
  });

  test("confines every container", () => {
    for (const [service, container] of Object.entries(services)) {
      expect({ service, read_only: container.read_only }).toEqual({ service, read_only: true });
      expect(container.cap_drop).toEqual(["ALL"]);
      expect(container.security_opt).toEqual(["no-new-privileges:true"]);
      expect(container.mem_limit).toBeDefined();
      expect(container.privileged).toBe(false);
      if (service === helper) expect(container.network_mode).toBe("none");
      else expect(container.user ?? "of the image").not.toMatch(/^(0|root)\b/);
    }
  });

  test("pins the images that it does not build, and asks what runs for its health", () => {
    for (const [service, { image, healthcheck }] of Object.entries(services)) {
      if (image.startsWith("devmesh-")) continue;
      expect(image).toMatch(/^(nats|mongo|haproxy):\d+\.\d+\.\d+/);
      if (service !== helper) expect(healthcheck?.test.length).toBeGreaterThan(1);
    }
  });

  test("gives every service each variable that it needs, and none that it does not know", async () => {
    const own = Object.entries(services).filter(([service, { image }]) => image === `devmesh-${service}`);
    expect(own.map(([service]) => service).sort()).toEqual(serviceNames.toSorted());
    const { environment, mem_limit } = services["broker-log"] ?? {};
    const sidecar = await environmentSchema("services/devices/src/broker-log/main.ts");
    const given = Object.entries(environment ?? {}).map(([key, value]) => [key, value ?? ""]);
    expect(readEnv(sidecar, Object.fromEntries(given))).toHaveProperty("env");
    expect(mem_limit).toBe(`${sidecars["broker-log"].memoryMib}m`);
    for (const [service, { environment, depends_on, mem_limit }] of own) {
      const { memoryMib } = mesh[service as ServiceName];
      expect({ service, mem_limit }).toEqual({ service, mem_limit: `${memoryMib}m` });
      const schema = await environmentSchema(`services/${service}/src/main.ts`);
      const env = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, value ?? ""]));
      const reading = readEnv(schema, env);
      expect({ service, problems: "problems" in reading ? reading.problems : [] }).toEqual({
        service,
        problems: [],
      });
      expect({ service, unknown: Object.keys(env).filter((key) => !(key in schema.shape)) }).toEqual({
        service,
        unknown: [],
      });
      const needed = env.STORE_URL === undefined ? ["nats"] : ["mongodb", "nats"];
      expect(Object.keys(depends_on).sort()).toEqual(needed);
      expect(new Set(Object.values(depends_on).map(({ condition }) => condition))).toEqual(
        new Set(["service_healthy"]),
      );
    }
  });

  test("mounts files that are there", async () => {
    const sources = Object.values(services).flatMap(({ volumes }) =>
      volumes.filter(({ type }) => type === "bind").map(({ source }) => source),
    );
    const place = join(folder.path, name.replaceAll(" ", "-"));
    const ours = sources.filter((source) => source.startsWith(place));
    expect(ours.length).toBeGreaterThan(1);
    for (const source of ours) await readFile(join(repository, source.slice(place.length)));
  });
});
