import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { createClient } from "@devmesh/service-kit/client";
import { createCallContext } from "@devmesh/service-kit/context";
import type { CallInput, Client } from "@devmesh/service-kit/implementation";
import { createLogger } from "@devmesh/service-kit/logger";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { startNatsServer, type TestNatsServer } from "@devmesh/testkit/nats-server";
import type { IClientOptions } from "mqtt";
import { type RegistryStandIn, startRegistryStandIn } from "./registry-stand-in.ts";

const password = "for-tests-only";

/** A broker with static device logins, the registry's stand-in, and a caller in the gateway's place. */
export interface TestMesh extends AsyncDisposable {
  readonly broker: TestNatsServer;
  readonly registry: RegistryStandIn;
  readonly gateway: Bus;
  readonly bridge: Pick<Client<typeof rpcBridge>, "call" | "wipeDevice" | "awaitIngestion">;
  /** Calls with a time of its own; `timeout_ms` is 5,000 unless given. */
  call(input: Partial<CallInput<typeof rpcBridge, "call">> & { device_id: string }): Promise<unknown>;
  /** Makes the device known and logs it in by MQTT. */
  connect(id: string, options?: IClientOptions & { clientId?: string }): Promise<MqttDevice>;
}

/** A running bridge. */
export interface BridgeProcess extends AsyncDisposable {
  /** What it logged so far. */
  log(): string;
  /** Sends a signal and waits for the end; the exit code, null after SIGKILL. */
  end(signal: "SIGTERM" | "SIGKILL"): Promise<number | null>;
  signal(signal: NodeJS.Signals): void;
  readonly exited: Promise<number | null>;
}

/** Starts all but the bridge. `deviceIds` are the devices that can log in. */
export async function startTestMesh(deviceIds: readonly string[]): Promise<TestMesh> {
  const broker = await startNatsServer({
    config: ({ port, mqttPort, storeDir }) => `
      server_name: test
      listen: "127.0.0.1:${port}"
      jetstream { store_dir: ${JSON.stringify(storeDir)}, limits { default_max_consumers: -1 } }
      mqtt { listen: "127.0.0.1:${mqttPort}" }
      accounts {
        MESH { jetstream: enabled, users: [
          ${["rpc-bridge", "devices", "gateway"].map((user) => `{ user: "${user}", password: "${password}" }`).join("\n")}
        ] }
        DEVICES { jetstream: enabled, users: [
          { user: "rpc-bridge.devices", password: "${password}" }
          ${deviceIds.map(deviceUser).join("\n")}
        ] }
      }`,
  });
  const log = createLogger({ service: "test", level: "silent" });
  const login = (user: string) => ({ url: broker.url, user, password, name: user, log });
  const registry = await startRegistryStandIn(login("devices"));
  const gateway = await connectBus(login("gateway"));
  const bridge = createClient(gateway, {
    contract: rpcBridge,
    methods: ["call", "wipeDevice", "awaitIngestion"],
  });
  return {
    broker,
    registry,
    gateway,
    bridge,
    async call({ device_id, method = "Sys.GetInfo", timeout_ms = 5_000, params }) {
      using call = createCallContext({ timeoutMs: timeout_ms + 1_000 });
      const input = { device_id, method, timeout_ms, ...(params === undefined ? {} : { params }) };
      return (await bridge.call(input, call)).result;
    },
    async connect(id, { clientId, ...options } = {}) {
      if (!registry.known.has(id)) registry.add(id);
      const login = {
        url: broker.mqttUrl,
        id,
        token: password,
        ...(clientId === undefined ? {} : { clientId }),
      };
      return await connectMqttDevice(login, options);
    },
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await registry[Symbol.asyncDispose]();
      await broker.stop();
    },
  };
}

/** What the auth callout grants a device (api.md, MQTT). */
function deviceUser(id: string): string {
  const own = `["${id}.>", "db.${id}.>"]`;
  const permissions = `{ publish: { allow: ${own} }, subscribe: { allow: ${own}, deny: ["${id}.rpc.>"] } }`;
  return `{ user: "${id}", password: "${password}", permissions: ${permissions} }`;
}

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** Starts the service as the launcher does and waits until it is ready. */
export async function startBridge(mesh: TestMesh, env: Record<string, string> = {}): Promise<BridgeProcess> {
  const child = spawn(
    process.execPath,
    [...(process.env.BRIDGE_PROF ? ["--cpu-prof", "--cpu-prof-dir=/tmp/rpcprof"] : []), main],
    {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: {
        PATH: process.env.PATH,
        NATS_URL: mesh.broker.url,
        NATS_USER: "rpc-bridge",
        NATS_PASSWORD: password,
        NATS_DEVICES_PASSWORD: password,
        MQTT_URL: mesh.broker.mqttUrl,
        OPS_PORT: "0",
        REPLICA_ID: "one",
        LOG_LEVEL: "debug",
        ...env,
      },
    },
  );
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
  }
  const exited = once(child, "exit").then(([code]) => code as number | null);
  await ready(child, () => log);
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return await exited;
  };
  return {
    log: () => log,
    exited,
    end,
    signal: (signal) => void child.kill(signal),
    async [Symbol.asyncDispose]() {
      await end("SIGKILL");
    },
  };
}

async function ready(child: ChildProcess, log: () => string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.on("message", (message: { type: string }) => {
      if (message.type === "ready") resolve();
    });
    child.once("exit", () => reject(new Error(`the bridge ended:\n${log()}`)));
    setTimeout(() => reject(new Error(`the bridge was not ready in time:\n${log()}`)), 20_000).unref();
  });
}
