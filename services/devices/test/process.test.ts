import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { data } from "@devmesh/contracts/data";
import { devices } from "@devmesh/contracts/devices";
import { keys } from "@devmesh/contracts/keys";
import { mesh } from "@devmesh/contracts/mesh";
import type { Principal } from "@devmesh/contracts/principal";
import { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { calls } from "@devmesh/contracts/topology";
import { answerAuthCallout } from "@devmesh/service-kit/auth-callout";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { createClient } from "@devmesh/service-kit/client";
import { createCallContext } from "@devmesh/service-kit/context";
import { createLogger } from "@devmesh/service-kit/logger";
import { serve } from "@devmesh/service-kit/serve";
import { startBroker, type TestBroker } from "@devmesh/testkit/broker";
import { eventually } from "@devmesh/testkit/eventually";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { onlyThese } from "./contract-stand-in.ts";

const log = createLogger({ service: "test", level: process.env.TEST_LOG ?? "silent" });
const main = resolve(import.meta.dirname, "../src/main.ts");
const master: Principal = { kind: "master" };

/** The service as it is started for real: its own process, its own broker user, real MQTT connections. */
describe("the process of the service", () => {
  let broker: TestBroker;
  let folder: TempFolder;
  let service: RunningService;
  const buses: Bus[] = [];
  const tokens = new Map<string, string>();
  const wiped: string[][] = [];
  let issued = 0;

  const connect = async (user: string) => {
    const password = broker.passwords[user] ?? "";
    const bus = await connectBus({ url: broker.url, name: user, user, password, log });
    buses.push(bus);
    return bus;
  };
  const issue = (device_id: string) => {
    const token = `dt_${String(++issued).padStart(32, "0")}`;
    tokens.set(device_id, token);
    return { token, public_key: `pk_${token.slice(3)}` };
  };

  beforeAll(async () => {
    broker = await startBroker();
    folder = await tempFolder();
    const keysBus = await connect("keys");
    answerAuthCallout(keysBus, { issuerSeed: broker.issuerSeed }, async ({ user, password }) => {
      if (tokens.get(user) !== password) return { deny: "wrong password" };
      return {
        allow: {
          deviceId: user,
          publish: { allow: [`${user}.>`], deny: [] },
          subscribe: { allow: [user, `${user}.>`], deny: [] },
          expiresAt: new Date(Date.now() + 60_000),
        },
      };
    });
    serve(
      keysBus,
      keys,
      onlyThese(keys, {
        issueCredentials: async ({ device_id }) => issue(device_id),
        rotateToken: async ({ device_id }) => ({ token: issue(device_id).token }),
        revokeDevice: async ({ device_id }) => {
          tokens.delete(device_id);
          return { client_ids: [device_id] };
        },
        forgetDevice: async () => ({}),
      }),
    );
    serve(
      await connect("data"),
      data,
      onlyThese(data, { purgeDevice: async () => ({}), admitDevice: async () => ({}) }),
    );
    serve(
      await connect("rpc-bridge"),
      rpcBridge,
      onlyThese(rpcBridge, {
        wipeDevice: async ({ client_ids }) => {
          wiped.push(client_ids);
          return {};
        },
      }),
    );
    await Promise.all(buses.map((bus) => bus.flush()));
    service = await startService(environment());
  });
  afterAll(async () => {
    await service.stop();
    await Promise.all(buses.map((bus) => bus.connection.close()));
    await broker.stop();
    await folder.remove();
  });

  const environment = () => ({
    ...broker.environmentOf("devices"),
    STORE_URL: `sqlite:${join(folder.path, "devices.db")}`,
  });
  const gateway = async () => {
    const bus = buses.find(({ user }) => user === "gateway") ?? (await connect("gateway"));
    const declared = mesh.gateway.calls.find(({ contract }) => contract === devices);
    if (!declared) throw new Error("the gateway calls devices");
    return createClient(
      bus,
      calls(devices, ["createDevice", "readDevice", "rotateToken", "deleteDevice", "listDevices"]),
    );
  };
  const call = () => createCallContext({ timeoutMs: 10_000 });
  const isOnline = async (id: string) =>
    (await (await gateway()).readDevice({ id, principal: master }, call())).device.online;

  test("follows a device's MQTT connections, over its own restart too", async () => {
    const { token } = await (await gateway()).createDevice({ id: "pump" }, call());
    expect(await isOnline("pump")).toBe(false);
    const device = await connectMqttDevice({ url: broker.mqttUrl, id: "pump", token });
    await eventually(() => isOnline("pump"));
    await service.stop();
    service = await startService(environment());
    expect(await isOnline("pump")).toBe(true);
    expect(await service.metrics()).toMatch(/^devices_online 1$/m);
    const beforeLeaving = Date.now();
    await device.leave();
    await eventually(async () => !(await isOnline("pump")));
    const { device: left } = await (await gateway()).readDevice({ id: "pump", principal: master }, call());
    expect(Date.parse(String(left.last_seen))).toBeGreaterThanOrEqual(beforeLeaving - 1);
    expect(await service.metrics()).toMatch(/^devices_online 0$/m);
  });

  test("rotating the token ends the connection before the answer", async () => {
    const { token } = await (await gateway()).createDevice({ id: "fan" }, call());
    const device = await connectMqttDevice({ url: broker.mqttUrl, id: "fan", token });
    const closed = device.closed();
    const next = await (await gateway()).rotateToken({ id: "fan" }, call());
    await closed;
    await expect(connectMqttDevice({ url: broker.mqttUrl, id: "fan", token })).rejects.toThrow();
    const again = await connectMqttDevice({ url: broker.mqttUrl, id: "fan", token: next.token });
    // Closed once more six seconds later, since it might have been a login with the old token.
    await again.closed();
  });

  test("deleting ends the connection and frees the id within thirty seconds", async () => {
    const { token } = await (await gateway()).createDevice({ id: "lamp" }, call());
    const device = await connectMqttDevice({ url: broker.mqttUrl, id: "lamp", token });
    const closed = device.closed();
    await (await gateway()).deleteDevice({ id: "lamp" }, call());
    await closed;
    const created = await eventually(
      async () => (await gateway()).createDevice({ id: "lamp" }, call()).catch(() => null),
      { withinMs: 25_000 },
    );
    expect(created).toMatchObject({ id: "lamp", online: false, last_seen: null });
    expect(wiped).toEqual([["lamp"]]);
  });

  test("a second process is refused the store in one sentence, and the first ends orderly", async () => {
    const second = spawn(process.execPath, [main], { env: environment(), stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    second.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    expect((await once(second, "exit"))[0]).toBe(1);
    expect(output).toContain("runs as one replica");
    expect(await service.stop()).toBe(0);
    service = await startService(environment());
    expect((await (await gateway()).listDevices({}, call())).items.map(({ id }) => id)).toEqual([
      "pump",
      "fan",
      "lamp",
    ]);
  });
});

interface RunningService {
  /** What it measures, in the text form of Prometheus. */
  metrics(): Promise<string>;
  /** Asks it to end; answers its exit code. */
  stop(): Promise<number | null>;
}

async function startService(env: Record<string, string>): Promise<RunningService> {
  const child: ChildProcess = spawn(process.execPath, [main], {
    env,
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [message] = await Promise.race([once(child, "message"), once(child, "exit")]);
  if (message?.type !== "ready") throw new Error(`the service did not start: ${output}`);
  return {
    metrics: async () => await (await fetch(`${message.ops}/metrics`)).text(),
    async stop() {
      if (child.exitCode !== null) return child.exitCode;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      return (await ended)[0];
    },
  };
}
