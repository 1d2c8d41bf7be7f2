import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { MethodDeclaration } from "@devmesh/contracts/contract";
import { keyEvents, keys } from "@devmesh/contracts/keys";
import { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { calls, hears } from "@devmesh/contracts/topology";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { createClient } from "@devmesh/service-kit/client";
import { createCallContext } from "@devmesh/service-kit/context";
import { readEnv } from "@devmesh/service-kit/env";
import { createPublisher, subscribe } from "@devmesh/service-kit/events";
import type { CallInput, CallOutput, MethodName } from "@devmesh/service-kit/implementation";
import { createLogger } from "@devmesh/service-kit/logger";
import { serve } from "@devmesh/service-kit/serve";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { startNatsServer, type TestNatsServer } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { KeysEnv } from "../src/env.ts";
import { type StartedKeys, startKeys } from "../src/start-keys.ts";

type Contract = typeof keys;
const allMethods = Object.keys(keys.methods) as MethodName<Contract>[];

/** A broker with JetStream that several runs of the service share. */
export interface KeysWorld extends AsyncDisposable {
  readonly server: TestNatsServer;
  /** Folder of the store and of the master key. */
  readonly folder: string;
  readonly encryptionKey: string;
}

/** Starts a broker and makes a folder; both go at the end. */
export async function startWorld(): Promise<KeysWorld> {
  const folder = await tempFolder();
  const server = await startNatsServer({ jetstream: true });
  return {
    server,
    folder: folder.path,
    encryptionKey: randomBytes(32).toString("base64"),
    async [Symbol.asyncDispose]() {
      await server.stop();
      await folder.remove();
    },
  };
}

/** The service on the bus, with a caller beside it and a clock moved by hand. */
export interface RunningKeys extends AsyncDisposable {
  readonly clock: ManualClock;
  readonly started: StartedKeys;
  readonly masterKeyFile: string;
  readonly storePath: string;
  /** Ids that `revoked` events named so far. */
  readonly revoked: readonly string[];
  /** Calls a method over the bus. */
  call<M extends MethodName<Contract>>(
    method: M,
    input: CallInput<Contract, M>,
  ): Promise<CallOutput<Contract, M>>;
  /** Resolves when every event said so far was heard. */
  heard(): Promise<void>;
}

/** Starts the service in a world of its own process's connections. */
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
    AUTH_ISSUER_SEED: `SA${"A".repeat(56)}`,
    MASTER_KEY_FILE: masterKeyFile,
    ...options.env,
  });
  if ("problems" in reading) throw new Error(reading.problems.join(" "));
  const log = createLogger({ service: "keys", level: "silent" });
  const bus = await connectBus({ url: world.server.url, name: "keys", log });
  const caller = await connectBus({ url: world.server.url, name: "caller", log });
  const stopping = new AbortController();
  const buses: Bus[] = [bus, caller];
  try {
    const started = await startKeys({
      env: reading.env,
      bus,
      publisher: await createPublisher(bus, keyEvents),
      clients: { "rpc-bridge": createClient(bus, calls(rpcBridge, ["awaitIngestion"])) },
      log,
      clock,
      signal: stopping.signal,
    });
    const revoked: string[] = [];
    const listening = subscribe(
      caller,
      hears(keyEvents, ["revoked"]),
      { revoked: ({ key_ids }) => void revoked.push(...key_ids) },
      { mode: "each" },
    );
    const served = serve(bus, keys, started.implementation);
    await bus.flush();
    await caller.flush();
    const client = createClient(caller, calls(keys, allMethods)) as unknown as Record<
      string,
      (input: unknown, call: ReturnType<typeof createCallContext>) => Promise<never>
    >;
    return {
      clock,
      started,
      masterKeyFile,
      storePath,
      revoked,
      async call(method, input) {
        const declaration: MethodDeclaration = keys.methods[method];
        using call = createCallContext({ timeoutMs: declaration.deadlineMs });
        const ask = client[method];
        if (ask === undefined) throw new Error(`no method ${method}`);
        return await ask(input, call);
      },
      async heard() {
        await bus.flush();
        await caller.flush();
      },
      async [Symbol.asyncDispose]() {
        stopping.abort(new Error("the test is over"));
        await served.drain(1_000);
        await listening.stop();
        await started.stop();
        await started.close();
        for (const one of buses) await one.close();
      },
    };
  } catch (error) {
    for (const one of buses) await one.close();
    throw error;
  }
}
