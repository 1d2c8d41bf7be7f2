import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { ContractDeclaration, MethodDeclaration } from "@devmesh/contracts/contract";
import { keyEvents, keys } from "@devmesh/contracts/keys";
import { mesh, type ServiceName } from "@devmesh/contracts/mesh";
import { calls, type ServiceDeclaration, subscribesTo } from "@devmesh/contracts/topology";
import { bridgeConsumers } from "@devmesh/device-broker/broker-subjects";
import { devicesUser } from "@devmesh/device-broker/devices-account";
import { ensureDeviceConsumer, provisionDeviceStream } from "@devmesh/device-broker/mqtt-stream";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { followEvents, type StreamedEvent } from "@devmesh/service-kit/events/event-stream";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { createLogger } from "@devmesh/service-kit/logger";
import { readEnv } from "@devmesh/service-kit/process/env";
import { createClient } from "@devmesh/service-kit/rpc/client";
import type { MethodName } from "@devmesh/service-kit/rpc/context";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import type { CallInput, CallOutput } from "@devmesh/service-kit/rpc/implementation";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { meshUser } from "@devmesh/service-kit/subjects";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { startBroker, type TestBroker } from "@devmesh/testkit/broker";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach } from "@jest/globals";
import type { z } from "zod";
import { KeysEnv } from "../src/env.ts";
import { startKeys } from "../src/start-keys.ts";

type Contract = typeof keys;

const log = createLogger({ service: "keys", level: process.env.TEST_LOG ?? "silent" });

/** The mesh's broker and a folder, which outlive a run of the service. */
export interface KeysWorld extends AsyncDisposable {
  readonly broker: TestBroker;
  /** Folder of the store and of the master key. */
  readonly folder: string;
  readonly encryptionKey: string;
  /** A connection as one of the mesh's users, with that service's rights; it ends with the world. */
  connect(name: ServiceName): Promise<Bus>;
  /** Sets up the stream of device messages and its consumers; the bridge's connection ends with the world. */
  provisionDeviceStreams(): Promise<Bus>;
}

/** Starts the broker and makes the folder; both go at the end. */
export async function startWorld(): Promise<KeysWorld> {
  const folder = await tempFolder();
  const broker = await startBroker();
  const open: Bus[] = [];
  async function connectAs(name: string, user: string, password: string | undefined): Promise<Bus> {
    if (password === undefined) throw new Error(`no user ${user}`);
    const bus = await connectBus({ url: broker.url, name, user, password, log });
    open.push(bus);
    return bus;
  }
  return {
    broker,
    folder: folder.path,
    encryptionKey: randomBytes(32).toString("base64"),
    connect: (name) => connectAs(name, meshUser(name), broker.passwords[name]),
    async provisionDeviceStreams() {
      const user = devicesUser("rpc-bridge");
      const token = broker.passwords[user];
      const bus = await connectAs("rpc-bridge", user, token);
      // The first login by MQTT makes the streams.
      const login = { url: broker.mqttUrl, id: user, token: token ?? "", clientId: "_bridge" };
      await (await connectMqttDevice(login)).leave();
      await provisionDeviceStream(bus, { signal: AbortSignal.timeout(30_000) });
      for (const name of bridgeConsumers) await ensureDeviceConsumer(bus, name);
      const data = devicesUser("data");
      await ensureDeviceConsumer(await connectAs("data", data, broker.passwords[data]), "data");
      return bus;
    },
    async [Symbol.asyncDispose]() {
      for (const bus of open) await bus[natsConnection].close();
      await broker.stop();
      await folder.remove();
    },
  };
}

/** What happened to a customer. */
type CustomerChange = Pick<z.output<typeof keyEvents.events.customer_changed.schema>, "id" | "change">;

function customerChange({ payload }: StreamedEvent): CustomerChange {
  const { id, change } = keyEvents.events.customer_changed.schema.parse(
    JSON.parse(Buffer.from(payload).toString("utf8")),
  );
  return { id, change };
}

/** The service on the bus, called by the services that may, with a clock moved by hand. */
export interface RunningKeys extends AsyncDisposable {
  readonly clock: ManualClock;
  readonly masterKeyFile: string;
  readonly storePath: string;
  /** Ids that `revoked` events named so far. */
  readonly revoked: readonly string[];
  /** Of the `customer_changed` events so far; they come by the stream, a little after `received` resolves. */
  readonly customerChanges: readonly CustomerChange[];
  /** Calls a method over the bus, as a service that declares to call it. */
  call<M extends MethodName<Contract>>(
    method: M,
    input: CallInput<Contract, M>,
  ): Promise<CallOutput<Contract, M>>;
  /** Resolves when the store can be read, as `/readyz` asks. */
  ready(): Promise<void>;
  /** What it measures, in the text form of Prometheus. */
  metrics(): Promise<string>;
  /** Resolves when every event published so far was received. */
  received(): Promise<void>;
}

/** Starts the service; disposing of it stops it and leaves the world as it is. Rejects as the service's start does. */
export async function startKeysIn(
  world: KeysWorld,
  options: { env?: Record<string, string>; clock?: ManualClock } = {},
): Promise<RunningKeys> {
  const clock = options.clock ?? new ManualClock();
  const masterKeyFile = join(world.folder, "master-key");
  const storePath = join(world.folder, "keys.db");
  const reading = readEnv(KeysEnv, {
    STORE_URL: `sqlite:${storePath}`,
    KEY_ENCRYPTION_KEY: world.encryptionKey,
    AUTH_ISSUER_SEED: world.broker.issuerSeed,
    MASTER_KEY_FILE: masterKeyFile,
    ...options.env,
  });
  if ("problems" in reading) throw new Error(reading.problems.join(" "));
  const bus = await world.connect("keys");
  const stopping = new AbortController();
  const started = await startKeys({
    env: reading.env,
    bus,
    publisher: await createPublisher(bus, keyEvents),
    log,
    clock,
    signal: stopping.signal,
  });
  const served = serve(bus, keys, started.implementation);
  await bus.flush();

  const gateway = await world.connect("gateway");
  const callers = { gateway, devices: await world.connect("devices"), mailer: await world.connect("mailer") };
  const revoked: string[] = [];
  const customerChanges: CustomerChange[] = [];
  const listening = subscribe(
    gateway,
    subscribesTo(keyEvents, ["revoked"]),
    { revoked: ({ key_ids }) => void revoked.push(...key_ids) },
    { mode: "each" },
  );
  const began = Promise.withResolvers<void>();
  const following = followEvents(
    gateway,
    [subscribesTo(keyEvents, ["customer_changed"])],
    {
      began: () => began.resolve(),
      events: (batch) => customerChanges.push(...batch.map(customerChange)),
    },
    stopping.signal,
  );
  await began.promise;
  await gateway.flush();

  return {
    clock,
    masterKeyFile,
    storePath,
    revoked,
    customerChanges,
    async call<M extends MethodName<Contract>>(method: M, input: CallInput<Contract, M>) {
      const declaration: MethodDeclaration = keys.methods[method];
      using call = createCallContext({ timeoutMs: declaration.deadlineMs });
      const client = createClient(callers[callerOf(method)], calls(keys, [method]));
      const ask = client[method] as unknown as (
        input: CallInput<Contract, M>,
        call: CallContext,
      ) => Promise<CallOutput<Contract, M>>;
      return await ask(input, call);
    },
    async ready() {
      await started.ready();
    },
    metrics: () => bus.metrics.registry.metrics(),
    async received() {
      await bus.flush();
      await gateway.flush();
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("the test is over"));
      await served.drain(1_000);
      await listening.stop();
      await following;
      await started.stop();
      await started.close();
      for (const one of [bus, ...Object.values(callers)]) await one.close();
    },
  };
}

/** A service that declares to call the method. */
function callerOf(method: MethodName<Contract>): "gateway" | "devices" | "mailer" {
  for (const name of ["gateway", "devices", "mailer"] as const) {
    const declaration: ServiceDeclaration = mesh[name];
    const contract: ContractDeclaration = keys;
    if (declaration.calls.some((one) => one.contract === contract && one.methods.includes(method)))
      return name;
  }
  throw new Error(`no service calls ${method}`);
}

/** A world and the service for each test of a file, which may start the service again. */
export function runForEachTest(): { readonly world: KeysWorld; service: RunningKeys } {
  const run = {} as { world: KeysWorld; service: RunningKeys };
  beforeEach(async () => {
    run.world = await startWorld();
    run.service = await startKeysIn(run.world);
  });
  afterEach(async () => {
    await run.service[Symbol.asyncDispose]();
    await run.world[Symbol.asyncDispose]();
  });
  return run;
}
