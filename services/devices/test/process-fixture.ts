import { join } from "node:path";
import { data } from "@devmesh/contracts/data";
import { devices } from "@devmesh/contracts/devices";
import { jobs } from "@devmesh/contracts/jobs";
import { keys } from "@devmesh/contracts/keys";
import { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { calls } from "@devmesh/contracts/topology";
import { webhooks } from "@devmesh/contracts/webhooks";
import { answerAuthCallout } from "@devmesh/device-broker/auth-callout";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { createLogger } from "@devmesh/service-kit/logger";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { meshUser } from "@devmesh/service-kit/subjects";
import { startBroker, type TestBroker } from "@devmesh/testkit/broker";
import { fakeContract } from "@devmesh/testkit/fakes";
import { tempFolder } from "@devmesh/testkit/temp-folder";

const log = createLogger({ service: "test", level: process.env.TEST_LOG ?? "silent" });

const methods = [
  "createDevice",
  "readDevice",
  "patchDevice",
  "rotateToken",
  "deleteDevice",
  "listDevices",
] as const;

/**
 * The mesh's real broker with fakes of the contracts that the service calls; devices log in with what was issued
 * to them.
 */
export interface ProcessFixture extends AsyncDisposable {
  readonly broker: TestBroker;
  /** The service's contract, called as the gateway does. */
  readonly devices: Client<typeof devices, (typeof methods)[number]>;
  /** Client ids of each device whose sessions were wiped. */
  readonly wiped: string[][];
  /** Runs before a device's sessions are wiped. */
  onWipe: () => void | Promise<void>;
  /** The environment of a process of the service; its store is a SQLite file by default. */
  environment(storeUrl?: string): Record<string, string>;
}

/** Starts a broker with fakes of all that a process of `devices` talks to. */
export async function startProcessFixture(): Promise<ProcessFixture> {
  const broker = await startBroker();
  const folder = await tempFolder();
  const buses: Bus[] = [];
  const tokens = new Map<string, string>();
  let issued = 0;
  const connect = async (name: string) => {
    const password = broker.passwords[name] ?? "";
    const bus = await connectBus({ url: broker.url, name, user: meshUser(name), password, log });
    buses.push(bus);
    return bus;
  };
  const issue = (device_id: string) => {
    const token = `dt_${String(++issued).padStart(32, "0")}`;
    tokens.set(device_id, token);
    return { token, public_key: `pk_${token.slice(3)}` };
  };
  const fixture: ProcessFixture = {
    broker,
    devices: createClient(await connect("gateway"), calls(devices, methods)),
    wiped: [],
    onWipe: () => undefined,
    environment: (storeUrl = `sqlite:${join(folder.path, "devices.db")}`) => ({
      ...broker.environmentOf("devices"),
      STORE_URL: storeUrl,
    }),
    async [Symbol.asyncDispose]() {
      await Promise.all(buses.map((bus) => bus[natsConnection].close()));
      await broker.stop();
      await folder.remove();
    },
  };

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
    fakeContract(keys, {
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
    fakeContract(data, { purgeDevice: async () => ({}), admitDevice: async () => ({}) }),
  );
  serve(await connect("webhooks"), webhooks, fakeContract(webhooks, { purgeDevice: async () => ({}) }));
  serve(await connect("jobs"), jobs, fakeContract(jobs, { dropDevice: async () => ({}) }));
  serve(
    await connect("rpc-bridge"),
    rpcBridge,
    fakeContract(rpcBridge, {
      wipeDevice: async ({ client_ids }) => {
        await fixture.onWipe();
        fixture.wiped.push(client_ids);
        return {};
      },
    }),
  );
  await Promise.all(buses.map((bus) => bus.flush()));
  return fixture;
}

/** The context of a call that a test makes of a process. */
export const call = () => createCallContext({ timeoutMs: 10_000 });
