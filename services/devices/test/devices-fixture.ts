import { join } from "node:path";
import { data } from "@devmesh/contracts/data";
import { deviceEvents, devices } from "@devmesh/contracts/devices";
import { jobs } from "@devmesh/contracts/jobs";
import { keys } from "@devmesh/contracts/keys";
import { mesh as declaration } from "@devmesh/contracts/mesh";
import { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { calls, subscribesTo } from "@devmesh/contracts/topology";
import { webhooks } from "@devmesh/contracts/webhooks";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { ServiceError } from "@devmesh/service-kit/errors";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { createLogger } from "@devmesh/service-kit/logger";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { eventSubject, eventsStream } from "@devmesh/service-kit/subjects";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { fakeContract } from "@devmesh/testkit/fakes";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { openDeviceStore, startDevices } from "../src/start-devices.ts";
import type { DeviceStore } from "../src/store/device-store.ts";
import { FakeBroker } from "./fake-broker.ts";

const log = createLogger({ service: "test", level: process.env.TEST_LOG ?? "silent" });

/** What one device may send in the fixture. */
export const trafficLimits = { messagesPerSecond: 100, bytesPerSecond: 10_000 };

/** An event as the mesh received it. */
interface ReceivedEvent {
  readonly name: string;
  readonly id: string;
  readonly payload: unknown;
}

/** The service in one life of its process: from a start to a stop or a crash. */
export interface ServiceLife {
  readonly store: DeviceStore;
  /** Hands the service a message of the supervisor. */
  readonly tell: (message: unknown) => void;
  /** Ends at once: what runs is abandoned, nothing is tidied up but the hold on the store's file. */
  crash(): Promise<void>;
}

/** A real nats-server, the service under test, and fakes of the contracts it calls. */
export interface DevicesFixture extends AsyncDisposable {
  readonly broker: FakeBroker;
  readonly clock: ManualClock;
  readonly devices: Client<typeof devices>;
  /** Calls that the fakes answered, as `keys.revokeDevice pump`, in order. */
  readonly calls: string[];
  readonly received: ReceivedEvent[];
  /** How many events of that name about a device the mesh's stream keeps. */
  kept(name: "online" | "offline" | "deleted", id: string): Promise<number>;
  /** Events are received as before, and no stream acknowledges them any more. */
  dropStream(): Promise<void>;
  /** Devices for which the fake of `keys` has credentials. */
  readonly credentials: Map<string, { token: string; public_key: string }>;
  /** Client ids by device, as logins left them. */
  readonly clientIds: Map<string, string[]>;
  /** Runs before a fake does its work and, as `after …`, before it answers; a throw becomes the answer. */
  onCall: (call: string) => void | Promise<void>;
  /** Starts the service, or one more replica of it where one runs. */
  start(): Promise<ServiceLife>;
  /** Moves the clock on until the check holds. */
  until<T>(check: () => T | Promise<T>): Promise<Exclude<T, false | null | undefined>>;
}

/** `storeUrl`: where devices are kept, unless in a SQLite file that goes with the mesh. */
export async function startDevicesFixture(
  options: { readonly storeUrl?: string } = {},
): Promise<DevicesFixture> {
  const server = await startNatsServer({ jetstream: true });
  const folder = await tempFolder();
  const buses: Bus[] = [];
  const connect = async (name: string) => {
    const bus = await connectBus({ url: server.url, name, log });
    buses.push(bus);
    return bus;
  };
  const lives = new Set<ServiceLife>();
  const clock = new ManualClock();
  const broker = new FakeBroker(clock);
  const outer = await connect("outer");
  let issued = 0;

  const mesh: DevicesFixture = {
    broker,
    clock,
    devices: createClient(
      outer,
      calls(devices, Object.keys(devices.methods) as (keyof typeof devices.methods)[]),
    ),
    calls: [],
    received: [],
    async kept(name, id) {
      const subject = eventSubject("devices", name, id, {});
      const asked = JSON.stringify({ subjects_filter: subject });
      const info = await outer[natsConnection].request(`$JS.API.STREAM.INFO.${eventsStream}`, asked);
      const { state } = info.json<{ state: { subjects?: Record<string, number> } }>();
      return state.subjects?.[subject] ?? 0;
    },
    async dropStream() {
      await outer[natsConnection].request(`$JS.API.STREAM.DELETE.${eventsStream}`);
    },
    credentials: new Map(),
    clientIds: new Map(),
    onCall: () => undefined,

    async start() {
      const bus = await connect("devices");
      const stopping = new AbortController();
      const storeUrl = options.storeUrl ?? `sqlite:${join(folder.path, "devices.db")}`;
      const store = await openDeviceStore(storeUrl, stopping.signal);
      const connections = broker.forOneLife();
      const [toKeys, toData, toRpcBridge, toJobs, toWebhooks] = declaration.devices.calls;
      let tell: ServiceLife["tell"] = () => undefined;
      const started = await startDevices({
        env: {
          STORE_URL: storeUrl,
          DEVICE_RATE_MESSAGES: trafficLimits.messagesPerSecond,
          DEVICE_RATE_BYTES: trafficLimits.bytesPerSecond,
        },
        bus,
        publisher: await createPublisher(bus, deviceEvents),
        clients: {
          keys: createClient(bus, toKeys),
          data: createClient(bus, toData),
          "rpc-bridge": createClient(bus, toRpcBridge),
          jobs: createClient(bus, toJobs),
          webhooks: createClient(bus, toWebhooks),
        },
        log,
        clock,
        metrics: bus.metrics,
        signal: stopping.signal,
        onLauncherMessage(handle) {
          tell = handle;
        },
        connections,
        store,
      });
      serve(bus, devices, started.implementation);
      await bus.flush();
      const life: ServiceLife = {
        store,
        tell: (message) => tell(message),
        async crash() {
          if (!lives.delete(life)) return;
          stopping.abort(new Error("crashed"));
          connections.end();
          await bus[natsConnection].close();
          await started.close();
        },
      };
      lives.add(life);
      return life;
    },

    until: (check) =>
      eventually(
        async () => {
          await clock.advance(250);
          await settleCalls();
          return await check();
        },
        { everyMs: 0 },
      ),

    async [Symbol.asyncDispose]() {
      for (const life of [...lives]) await life.crash();
      await Promise.all(buses.map((bus) => bus[natsConnection].close()));
      await server.stop();
      await folder.remove();
    },
  };

  /**
   * Lets the calls under way come to their answers: of what was sent before its ping, the broker's pong comes last.
   * On a busy machine the manual clock would otherwise outrun them.
   */
  async function settleCalls(): Promise<void> {
    for (let round = 0; round < 2; round++) {
      for (const bus of buses) {
        // A life may crash, and its connection close, while its pong is awaited.
        if (!bus[natsConnection].isClosed())
          await Promise.race([bus.flush().catch(() => undefined), bus[natsConnection].closed()]);
      }
    }
  }

  async function fake<T>(call: string, work: () => T): Promise<T> {
    await mesh.onCall(call);
    mesh.calls.push(call);
    const answer = work();
    await mesh.onCall(`after ${call}`);
    return answer;
  }
  const newCredentials = () => ({ token: `dt_${++issued}`, public_key: `pk_${issued}` });
  const credentialsOf = (id: string) => {
    const found = mesh.credentials.get(id);
    if (!found) throw new ServiceError({ code: "not_found", reason: "device_not_found" });
    return found;
  };

  const peers = await connect("peers");
  serve(
    peers,
    keys,
    fakeContract(keys, {
      issueCredentials: ({ device_id }) =>
        fake(`keys.issueCredentials ${device_id}`, () => {
          mesh.credentials.set(device_id, newCredentials());
          return credentialsOf(device_id);
        }),
      readCredentials: ({ device_id }) =>
        fake(`keys.readCredentials ${device_id}`, () => credentialsOf(device_id)),
      rotateToken: ({ device_id }) =>
        fake(`keys.rotateToken ${device_id}`, () => {
          const { token } = newCredentials();
          mesh.credentials.set(device_id, { ...credentialsOf(device_id), token });
          return { token };
        }),
      rotatePublicKey: ({ device_id }) =>
        fake(`keys.rotatePublicKey ${device_id}`, () => {
          const { public_key } = newCredentials();
          mesh.credentials.set(device_id, { ...credentialsOf(device_id), public_key });
          return { public_key };
        }),
      revokeDevice: ({ device_id }) =>
        fake(`keys.revokeDevice ${device_id}`, () => {
          mesh.credentials.delete(device_id);
          return { client_ids: mesh.clientIds.get(device_id) ?? [] };
        }),
      forgetDevice: ({ device_id }) =>
        fake(`keys.forgetDevice ${device_id}`, () => {
          mesh.clientIds.delete(device_id);
          return {};
        }),
    }),
  );
  serve(
    peers,
    data,
    fakeContract(data, {
      purgeDevice: ({ device_id }) => fake(`data.purgeDevice ${device_id}`, () => ({})),
      admitDevice: ({ device_id }) => fake(`data.admitDevice ${device_id}`, () => ({})),
    }),
  );
  serve(
    peers,
    webhooks,
    fakeContract(webhooks, {
      purgeDevice: ({ device_id }) => fake(`webhooks.purgeDevice ${device_id}`, () => ({})),
    }),
  );
  serve(
    peers,
    jobs,
    fakeContract(jobs, {
      dropDevice: ({ device_id }) => fake(`jobs.dropDevice ${device_id}`, () => ({})),
    }),
  );
  serve(
    peers,
    rpcBridge,
    fakeContract(rpcBridge, {
      endSessions: async ({ device_id, client_ids }) => {
        await mesh.onCall(`rpc-bridge.endSessions ${device_id}`);
        broker.takeOver(device_id, client_ids);
        return {};
      },
      wipeDevice: ({ device_id, client_ids }) =>
        fake(`rpc-bridge.wipeDevice ${device_id} [${client_ids}]`, () => ({})),
    }),
  );
  await createPublisher(peers, deviceEvents);
  const record = (name: string) => (payload: { id: string }) =>
    void mesh.received.push({ name, id: payload.id, payload });
  const names = ["online", "offline", "created", "deleted", "updated", "throttled"] as const;
  subscribe(
    outer,
    subscribesTo(deviceEvents, names),
    {
      online: record("online"),
      offline: record("offline"),
      created: record("created"),
      deleted: record("deleted"),
      updated: record("updated"),
      throttled: record("throttled"),
    },
    { mode: "each" },
  );
  await Promise.all([peers.flush(), outer.flush()]);
  return mesh;
}

/** The context of a call that a test makes. */
export const call = (timeoutMs = 5_000) => createCallContext({ timeoutMs });
