import { mesh } from "@devmesh/contracts/mesh";
import type { DiagnosisReport } from "@devmesh/contracts/model/diagnostics";
import { type CallAttempt, rpcBridge, rpcEvents } from "@devmesh/contracts/rpc-bridge";
import { calls, defineService, subscribesTo } from "@devmesh/contracts/topology";
import { answerAuthCallout, type DeviceGrant } from "@devmesh/device-broker/auth-callout";
import { brokerConfig, brokerUsers } from "@devmesh/device-broker/broker-config";
import { devicesUser } from "@devmesh/device-broker/devices-account";
import { createAccountKeyPair } from "@devmesh/device-broker/nkey";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { createLogger } from "@devmesh/service-kit/logger";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { CallInput, Client } from "@devmesh/service-kit/rpc/implementation";
import { meshUser } from "@devmesh/service-kit/subjects";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { startNatsServer, type TestNatsServer } from "@devmesh/testkit/nats-server";
import { allowingStoreRetained } from "@devmesh/testkit/retained-messages";
import { type StartedService, startService } from "@devmesh/testkit/service-process";
import { afterAll, beforeAll } from "@jest/globals";
import type { IClientOptions } from "mqtt";
import type { BrokerLogin } from "../src/mqtt-link.ts";
import { type FakeRegistry, startFakeRegistry } from "./fake-registry.ts";

/** Of each user of the broker, and of each device. */
export const password = "for-tests-only";

/** What the bridge's metrics read, without a bridge. */
export const unmeasured = {
  callsInFlight: () => 0,
  backlog: async () => 0,
  certificateExpiresAt: () => null,
};

/** A broker with the mesh's users, device logins, a fake registry, and a caller of the bridge. */
export interface BridgeFixture extends AsyncDisposable {
  readonly broker: TestNatsServer;
  readonly registry: FakeRegistry;
  /** What the bridge reported of devices. */
  readonly diagnosed: readonly DiagnosisReport[];
  /** A connection that may subscribe to the bridge's events. */
  readonly tester: Bus;
  readonly bridge: Pick<
    Client<typeof rpcBridge>,
    "call" | "attemptCall" | "endSessions" | "wipeDevice" | "readBacklog"
  >;
  /** Calls with a time; `timeout_ms` is 30,000 unless given. */
  call(input: Partial<CallInput<typeof rpcBridge, "call">> & { device_id: string }): Promise<unknown>;
  /** One attempt at a call; `timeout_ms` is 30,000 unless given. */
  attempt(
    input: Partial<CallInput<typeof rpcBridge, "attemptCall">> & { device_id: string },
  ): Promise<CallAttempt>;
  /** How the bridge logs in to the MQTT listener. */
  readonly brokerLogin: BrokerLogin;
  /** A connection to account DEVICES with the rights of the bridge. */
  connectDevicesBus(name?: "rpc-bridge" | "data"): Promise<Bus>;
  /** Makes the device known and logs it in by MQTT. */
  connect(id: string, options?: IClientOptions & { clientId?: string }): Promise<MqttDevice>;
}

/** The mesh with a service that calls the bridge in place of all its callers and subscribes to its events. */
const testedMesh = {
  ...mesh,
  tester: defineService({
    calls: [calls(rpcBridge, ["call", "attemptCall", "endSessions", "wipeDevice", "readBacklog"])],
    subscribes: [subscribesTo(rpcEvents, ["rpc_in", "rpc_out", "hoarding", "diagnostics"])],
  }),
};

/** Starts a broker as the launcher configures it, and all that the bridge needs in it. */
export async function startBridgeFixture(): Promise<BridgeFixture> {
  const issuer = createAccountKeyPair();
  const users = Object.fromEntries(brokerUsers(testedMesh).map(({ name }) => [name, password]));
  const broker = await startNatsServer({
    config: ({ port, mqttPort, storeDir }) =>
      allowingStoreRetained(
        brokerConfig(testedMesh, {
          host: "127.0.0.1",
          ports: { nats: port, mqtt: mqttPort },
          storeDir,
          users,
          issuerPublicKey: issuer.publicKey,
        }),
      ),
  });
  const log = createLogger({ service: "test", level: "silent" });
  const login = (name: string) => ({ url: broker.url, user: meshUser(name), password, name, log });
  const keys = await connectBus(login("keys"));
  answerAuthCallout(keys, { issuerSeed: issuer.seed }, async (request) =>
    request.password === password ? { allow: grantOf(request.user) } : { deny: "wrong password" },
  );
  const registry = await startFakeRegistry(login("devices"));
  const tester = await connectBus(login("tester"));
  const [dependency] = testedMesh.tester.calls;
  const bridge = createClient(tester, dependency);
  const diagnosed: DiagnosisReport[] = [];
  subscribe(
    tester,
    { events: rpcEvents, names: ["diagnostics"] },
    { diagnostics: ({ reports }) => void diagnosed.push(...reports) },
    { mode: "each" },
  );
  await tester.flush();
  return {
    diagnosed,
    broker,
    registry,
    tester,
    bridge,
    async call({ device_id, method = "Sys.GetInfo", timeout_ms = 30_000, params }) {
      using call = createCallContext({ timeoutMs: timeout_ms + 1_000 });
      const input = { device_id, method, timeout_ms, ...(params === undefined ? {} : { params }) };
      return (await bridge.call(input, call)).result;
    },
    async attempt({ method = "Sys.GetInfo", timeout_ms = 30_000, ...input }) {
      using call = createCallContext({ timeoutMs: timeout_ms + 1_000 });
      return await bridge.attemptCall({ method, timeout_ms, ...input }, call);
    },
    brokerLogin: { urls: [broker.mqttUrl], user: devicesUser("rpc-bridge"), password },
    connectDevicesBus: (name = "rpc-bridge") => connectBus({ ...login(name), user: devicesUser(name) }),
    async connect(id, { clientId, ...options } = {}) {
      if (!registry.known.has(id)) registry.add(id);
      const device = {
        url: broker.mqttUrl,
        id,
        token: password,
        ...(clientId === undefined ? {} : { clientId }),
      };
      return await connectMqttDevice(device, options);
    },
    async [Symbol.asyncDispose]() {
      await tester.close();
      await registry[Symbol.asyncDispose]();
      await keys.close();
      await broker.stop();
    },
  };
}

/** What a device may do (api.md, MQTT). */
function grantOf(deviceId: string): DeviceGrant {
  const own = [`${deviceId}.>`, `db.${deviceId}.>`];
  return {
    deviceId,
    publish: { allow: own, deny: [] },
    subscribe: { allow: own, deny: [`${deviceId}.rpc.>`] },
    expiresAt: new Date(Date.now() + 3_600_000),
  };
}

/** Starts the service as the launcher does and waits until it is ready. */
export async function startBridge(
  { broker }: BridgeFixture,
  env: Record<string, string> = {},
): Promise<StartedService> {
  return await startService("rpc-bridge", {
    NATS_URL: broker.url,
    NATS_USER: "rpc-bridge",
    NATS_PASSWORD: password,
    NATS_DEVICES_PASSWORD: password,
    MQTT_URL: broker.mqttUrl,
    OPS_PORT: "0",
    REPLICA_ID: "one",
    LOG_LEVEL: "debug",
    ...env,
  });
}

/** A broker and a bridge for the tests of a file; a test that ends the bridge puts another one in its place. */
export interface SharedBridge {
  readonly mesh: BridgeFixture;
  bridge: StartedService;
}

/** Starts both before the tests of a file and ends them after. */
export function shareBridge(env: Record<string, string> = {}): SharedBridge {
  const shared = {} as { mesh: BridgeFixture; bridge: StartedService };
  beforeAll(async () => {
    shared.mesh = await startBridgeFixture();
    shared.bridge = await startBridge(shared.mesh, env);
  });
  afterAll(async () => {
    await shared.bridge?.[Symbol.asyncDispose]();
    await shared.mesh?.[Symbol.asyncDispose]();
  });
  return shared;
}
