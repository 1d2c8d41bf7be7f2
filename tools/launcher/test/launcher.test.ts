import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { serviceNames } from "@devmesh/contracts/mesh";
import { commandLineOf } from "@devmesh/supervisor/process/command-line";
import { eventually } from "@devmesh/testkit/eventually";
import { isListening } from "@devmesh/testkit/free-port";
import { type LaunchedMesh, launchMesh, startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";

const services = serviceNames.toSorted();

/** Of a mesh that is only started and ended: half of what a start costs is its services. */
const twoServices = services
  .filter((name) => name !== "keys" && name !== "gateway")
  .flatMap((name) => ["--without", name]);

/** Process ids of all that runs of a mesh, the launcher included. */
async function pidsOf(mesh: LaunchedMesh): Promise<number[]> {
  const { pid, nats_server, services: running } = await mesh.parts();
  return [
    pid,
    ...(nats_server ? [nats_server.pid] : []),
    ...Object.values(running).map((service) => service.pid),
  ];
}

/** Command lines of those processes that still run. */
async function survivors(pids: readonly number[]): Promise<string[]> {
  return (await Promise.all(pids.map(commandLineOf))).filter((line) => line !== null);
}

async function nothingIsLeft(mesh: LaunchedMesh, pids: readonly number[]): Promise<void> {
  await eventually(async () => (await survivors(pids)).length === 0, { everyMs: 100 });
  for (const port of Object.values(mesh.ports)) await eventually(async () => !(await isListening(port)));
}

/** Command lines of all processes that name a folder. */
async function processesThatName(folder: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-ww", "-o", "command="]);
  return stdout.split("\n").filter((line) => line.includes(folder));
}

/** The text of every file below a folder. */
async function everyFile(folder: string): Promise<{ path: string; text: string }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async (entry) => {
        const path = join(entry.parentPath, entry.name);
        return { path, text: await readFile(path, "latin1") };
      }),
  );
}

describe("a mesh that is up", () => {
  let mesh: TestMesh;
  beforeAll(async () => {
    const env = {
      LOG_LEVEL: "debug",
      MQTT_PUBLIC_URL: "mqtts://mqtt.example.com",
      TRUST_PROXY: "loopback",
    };
    mesh = await startMesh({ through: "run.mjs", env });
  }, 120_000);
  afterAll(() => mesh?.stop(), 90_000);

  test("prints the ready line once, the file of the master key, where devices connect, and lines to try", () => {
    expect(mesh.output().match(/^ready .*$/gm)).toEqual([`ready ${mesh.url}`]);
    expect(mesh.output()).not.toContain(mesh.masterKey);
    expect(mesh.output()).toContain(`Master key  in ${join(mesh.dataDir, "master-key")}\n`);
    expect(mesh.output()).toContain(`${mesh.url}/api/v2/devices`);
    expect(mesh.output()).toMatch(/^MQTT +mqtts:\/\/mqtt\.example\.com$/m);
    expect(mesh.masterKey).toMatch(/^mk_[A-Za-z0-9]{32}$/);
  });

  test("runs one process a service, with its name in the command line and its operations page", async () => {
    const { services: running } = await mesh.parts();
    expect(Object.keys(running).sort()).toEqual(services);
    for (const [name, { pid, ops }] of Object.entries(running)) {
      expect(await commandLineOf(pid)).toContain(`services/${name}`);
      for (const page of ["healthz", "readyz"]) expect((await fetch(`${ops}/${page}`)).status).toBe(200);
      expect(await (await fetch(`${ops}/metrics`)).text()).toContain("process_cpu_seconds_total");
    }
  });

  test("answers over HTTP with the master key", async () => {
    expect(await mesh.http("/api/v2/devices")).toMatchObject({ status: 200, json: [] });
    expect((await mesh.http.as(null)("/api/v2/devices")).status).toBe(401);
  });

  test("carries the trace of a proxy's request into the log lines of each service it reaches", async () => {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, "x-request-id": "request-7" };
    await mesh.http("/api/v2/devices", { headers });
    for (const service of ["gateway", "devices"]) {
      const line = await eventually(async () =>
        (await readFile(join(mesh.dataDir, "logs", `${service}.log`), "utf8"))
          .split("\n")
          .find((text) => text.includes(traceId)),
      );
      expect(JSON.parse(line)).toMatchObject({ service, trace_id: traceId, request_id: "request-7" });
    }
  });

  test("keeps a token that a device sends as user name or client id out of the broker's log", async () => {
    const { json } = await mesh.http("/api/v2/devices", { method: "POST", body: { id: "mistaken" } });
    const token: string = json.token;
    const wrong = { url: `mqtt://127.0.0.1:${mesh.ports.mqtt}`, token };
    for (const login of [
      { id: token, clientId: "mistaken" },
      { id: "mistaken", clientId: token },
    ]) {
      await expect(connectMqttDevice({ ...wrong, ...login })).rejects.toThrow();
    }
    const log = await eventually(async () => {
      const text = await readFile(join(mesh.dataDir, "logs", "nats-server.log"), "utf8");
      return (
        text.includes('User "dt_[redacted]"') && text.includes('"dt_[redacted]" - authentication') && text
      );
    });
    expect(log).not.toContain(token);
  });

  test("keeps its secrets for the owner alone, and out of logs, command lines and mesh.json", async () => {
    const owned = ["installation.json", "master-key", "nats-server.conf", "mesh.json"];
    for (const name of owned) expect((await stat(join(mesh.dataDir, name))).mode & 0o777).toBe(0o600);
    const installation = JSON.parse(await readFile(join(mesh.dataDir, "installation.json"), "utf8"));
    const secrets: string[] = [
      mesh.masterKey,
      installation.issuer.seed,
      installation.key_encryption_key,
      ...Object.values<string>(installation.passwords),
    ];
    const logs = await everyFile(join(mesh.dataDir, "logs"));
    const lines = await survivors(await pidsOf(mesh));
    const meshFile = await readFile(join(mesh.dataDir, "mesh.json"), "utf8");
    for (const text of [...logs.map((log) => log.text), ...lines, meshFile]) {
      expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
    }
  });

  test("starts a killed service and a killed nats-server again, names them, and answers again", async () => {
    const waits = { devices: "in 1 s", "nats-server": "at once" } as const;
    for (const part of ["devices", "nats-server"] as const) {
      const former = await mesh.pidOf(part);
      await mesh.kill(part);
      await mesh.restarted(part, former);
      await eventually(() => mesh.output().includes(`${part} is ready again.`));
      expect(mesh.output()).toContain(`${part} was killed (SIGKILL); it is started again ${waits[part]}.`);
      await eventually(async () => (await mesh.http("/api/v2/devices")).status === 200, {
        everyMs: 200,
      });
    }
  }, 120_000);

  test("refuses a second mesh in its folder and on its ports, in one sentence and with exit code 1", async () => {
    await using second = await launchMesh({ dataDir: mesh.dataDir });
    expect(await second.ended()).toBe(1);
    expect(second.output()).toMatch(/^The data folder .* belongs to a mesh that runs already.*DATA_DIR.*\n$/);
    await using third = await launchMesh({ env: { PORT: String(mesh.ports.http) } });
    expect(await third.ended()).toBe(1);
    expect(third.output()).toBe(`Port ${mesh.ports.http} is in use already; set PORT to another one.\n`);
  });

  describe("beside another one with other ports, another folder and --demo", () => {
    let other: TestMesh;
    beforeAll(async () => {
      other = await startMesh({ args: ["--demo"] });
    }, 120_000);
    afterAll(() => other?.stop(), 90_000);

    test("three simulated devices answer calls and publish data", async () => {
      const { json: devices } = await other.http("/api/v2/devices");
      const ids: string[] = devices.map(({ id }: { id: string }) => id);
      expect(ids.sort()).toEqual(["demo-lamp", "demo-pump", "demo-weather"]);
      for (const id of ids) {
        const { json: functions } = await other.http(`/api/v2/devices/${id}/rpc/RPC.List`);
        expect(functions).toEqual(expect.arrayContaining(["RPC.List", "Sys.GetInfo", "sum"]));
        expect((await other.http(`/api/v2/devices/${id}/rpc/Sys.GetInfo`)).json).toMatchObject({ id });
      }
      expect(await other.http("/api/v2/devices/demo-lamp/rpc/sum", { body: [1, 2, 3.5] })).toMatchObject({
        json: 6.5,
      });
      const wrong = await other.http("/api/v2/devices/demo-lamp/rpc/Led.Set", { body: { on: "yes" } });
      expect(wrong).toMatchObject({ status: 502, json: { error: { code: 400 } } });
      const desired = { shadow: { state: { desired: { app: { brightness: 80 } } } } };
      await other.http("/api/v2/devices/demo-lamp", { body: desired });
      await eventually(async () => {
        const { json } = await other.http("/api/v2/devices/demo-lamp");
        return json.shadow.state.reported.app?.brightness === 80;
      });
      await eventually(
        async () => (await other.http("/api/v2/data?filter=db/demo-weather/")).json.length > 0,
      );
    }, 150_000);

    test("a rule fires for the pump, which is mailed into the outbox, until it is asked for 4 bar", async () => {
      const alerts = async (state: string) =>
        (await other.http(`/api/v2/alerts?state=${state}&device_id=demo-pump`)).json;
      const [alert] = await eventually(async () => (await alerts("firing")).length === 1 && alerts("firing"));
      expect(alert).toMatchObject({ rule_name: "Demonstration: low pressure", value: 3 });
      const outbox = join(other.dataDir, "outbox");
      await eventually(async () => {
        const mails = await Promise.all(
          (await readdir(outbox).catch(() => []))
            .filter((name) => name.endsWith(".eml"))
            .map((name) => readFile(join(outbox, name), "utf8")),
        );
        return mails.some((mail) => mail.includes("demo@example.com") && mail.includes("low pressure"));
      });
      const desired = { shadow: { state: { desired: { app: { target_bar: 4 } } } } };
      await other.http("/api/v2/devices/demo-pump", { body: desired });
      await eventually(async () => (await alerts("cleared")).length === 1);
    }, 150_000);

    test("shares nothing with it", async () => {
      expect(other.masterKey).not.toBe(mesh.masterKey);
      await other.http("/api/v2/devices", { body: { id: "only-there" } });
      expect((await mesh.http("/api/v2/devices/only-there")).status).toBe(404);
      expect((await mesh.http.as(other.masterKey)("/api/v2/devices")).status).toBe(401);
    });
  });
});

/** macOS has another `script`. */
const withTerminal = process.platform === "linux" ? test : test.skip;

withTerminal(
  "the first master key is printed on a terminal",
  async () => {
    await using mesh = await startMesh({ through: "terminal" });
    expect(mesh.output()).toContain(`Master key  ${mesh.masterKey}  (kept in `);
    // `script` does not pass a signal on.
    process.kill((await mesh.parts()).pid, "SIGTERM");
    expect(await mesh.ended()).toBe(0);
  },
  150_000,
);

describe("nothing is left running", () => {
  test("after Ctrl-C, and after SIGKILL of launch.ts at the next start, which has the same master key", async () => {
    await using folder = await tempFolder();
    const dataDir = join(folder.path, "data");
    const mesh = await startMesh({ dataDir, through: "run.mjs" });
    const pids = await pidsOf(mesh);
    mesh.process.kill("SIGINT");
    expect(await mesh.ended()).toBe(0);
    await nothingIsLeft(mesh, pids);
    expect(existsSync(join(dataDir, "mesh.json"))).toBe(false);
    await mesh.stop();
    await using again = await startMesh({ dataDir, args: twoServices });
    expect(again.masterKey).toBe(mesh.masterKey);
    expect(again.output()).not.toContain(mesh.masterKey);
    await expectEndsWithLauncher(again);
  }, 180_000);

  /** After SIGKILL of the program that started the mesh. */
  async function expectEndsWithLauncher(mesh: TestMesh): Promise<void> {
    const pids = await pidsOf(mesh);
    mesh.process.kill("SIGKILL");
    await mesh.ended();
    await nothingIsLeft(mesh, pids);
  }

  test("after SIGKILL of run.mjs", async () => {
    await using mesh = await startMesh({ through: "run.mjs", args: twoServices });
    await expectEndsWithLauncher(mesh);
  }, 150_000);

  test("after SIGTERM of npm, which does not pass it on", async () => {
    const mesh = await startMesh({ through: "npm", args: twoServices });
    const pids = await pidsOf(mesh);
    mesh.process.kill("SIGTERM");
    await nothingIsLeft(mesh, pids);
    await mesh.stop();
  }, 150_000);

  test.each(["nats-server.pid", "logs/keys.log", "keys.db", "master-key"])(
    "after SIGKILL in the middle of a start, when there is %s",
    async (file) => {
      await using mesh = await launchMesh();
      await eventually(() => existsSync(join(mesh.dataDir, file)), { everyMs: 1 });
      mesh.process.kill("SIGKILL");
      await mesh.ended();
      await eventually(async () => (await processesThatName(mesh.dataDir)).length === 0, {
        everyMs: 200,
      });
    },
  );

  test("after Ctrl-C in the middle of a start", async () => {
    await using mesh = await launchMesh({ through: "run.mjs" });
    await eventually(() => existsSync(join(mesh.dataDir, "logs", "keys.log")), {
      everyMs: 1,
    });
    mesh.process.kill("SIGINT");
    expect(await mesh.ended()).toBe(0);
    expect(await processesThatName(mesh.dataDir)).toEqual([]);
    expect(mesh.output()).toBe("");
  });

  test("of a mesh whose folder is taken over after a crash, and after a second Ctrl-C, which does not wait", async () => {
    await using folder = await tempFolder();
    const dataDir = join(folder.path, "data");
    const crashed = await startMesh({ dataDir, args: twoServices });
    const pids = await pidsOf(crashed);
    crashed.process.kill("SIGKILL");
    await crashed.ended();
    // At once, while what the crash left is still about to end, and on the same ports.
    const { http, mqtt, nats } = crashed.ports;
    const env = { PORT: String(http), MQTT_PORT: String(mqtt), NATS_PORT: String(nats) };
    await using next = await startMesh({ dataDir, env, args: twoServices });
    expect(await survivors(pids)).toEqual([]);
    expect(next.masterKey).toBe(crashed.masterKey);
    await crashed.stop();

    const running = await pidsOf(next);
    // A service that is stopped by SIGSTOP cannot end in order.
    process.kill(await next.pidOf("gateway"), "SIGSTOP");
    next.process.kill("SIGINT");
    await eventually(() => next.output().includes("Stopping."));
    const end = next.ended();
    const again = setInterval(() => next.process.kill("SIGINT"), 600);
    expect(await end).toBe(130);
    clearInterval(again);
    await nothingIsLeft(next, running);
  }, 180_000);

  test("after a start that fails: a folder that cannot be written", async () => {
    await using folder = await tempFolder();
    const file = join(folder.path, "file");
    await writeFile(file, "");
    await using mesh = await launchMesh({ dataDir: join(file, "data"), through: "run.mjs" });
    expect(await mesh.ended()).toBe(1);
    expect(mesh.output()).toMatch(
      /^The data folder .* cannot be written \(ENOTDIR\); set DATA_DIR to one that can\.\n$/,
    );
  });

  test.each(["PORT", "MQTT_PORT", "NATS_PORT"])(
    "after a start that fails: %s is in use",
    async (variable) => {
      const other = createServer().listen(0, "127.0.0.1");
      await once(other, "listening");
      const address = other.address();
      const port = typeof address === "object" ? address?.port : null;
      await using mesh = await launchMesh({ env: { [variable]: String(port) } });
      expect(await mesh.ended()).toBe(1);
      expect(mesh.output()).toBe(`Port ${port} is in use already; set ${variable} to another one.\n`);
      other.close();
    },
  );

  test("after a start that fails: there is no nats-server to be had", async () => {
    await using folder = await tempFolder();
    await using mesh = await launchMesh({
      env: {
        PATH: folder.path,
        NATS_SERVER_BIN: "",
        XDG_CACHE_HOME: folder.path,
        NATS_SERVER_DOWNLOAD_URL: "http://127.0.0.1:9",
      },
    });
    expect(await mesh.ended()).toBe(1);
    const [last] = mesh.output().trim().split("\n").slice(-1);
    expect(last).toMatch(
      /^nats-server 2\.15\.2 was not found on PATH and could not be fetched .*NATS_SERVER_BIN\.$/,
    );
  });
});

test("a command line that is not understood gets the usage and exit code 2", async () => {
  await using mesh = await launchMesh({ args: ["--nonsense"], through: "run.mjs" });
  expect(await mesh.ended()).toBe(2);
  expect(mesh.output()).toContain("Usage: npm start");
});
