import { join } from "node:path";
import { deviceEvents, devices } from "@devmesh/contracts/devices";
import { jobs } from "@devmesh/contracts/jobs";
import type { Execution } from "@devmesh/contracts/model/execution";
import { type CallAttempt, rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { calls } from "@devmesh/contracts/topology";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { ServiceError } from "@devmesh/service-kit/errors";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { createLogger } from "@devmesh/service-kit/logger";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { CallInput, Client } from "@devmesh/service-kit/rpc/implementation";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { meshUser } from "@devmesh/service-kit/subjects";
import { startBroker } from "@devmesh/testkit/broker";
import { fakeContract } from "@devmesh/testkit/fakes";
import { type StartedService, startService } from "@devmesh/testkit/service-process";
import { tempFolder } from "@devmesh/testkit/temp-folder";

/** A device of the fakes. */
interface FakeDevice {
  online: boolean;
  /** Whether it has subscribed to its calls. */
  listens: boolean;
  /** What it answers to a call; it may wait. */
  answer: (func: string) => CallAttempt | Promise<CallAttempt>;
  /** The functions that it was sent, in order. */
  readonly received: string[];
  /** The functions of its ACL. */
  permitted: readonly string[];
}

/** The broker of a mesh with fakes of `devices` and `rpc-bridge`, and processes of the service. */
export interface JobsFixture extends AsyncDisposable {
  readonly devices: Map<string, FakeDevice>;
  add(id: string, device?: Partial<FakeDevice>): FakeDevice;
  /** The device connects, and subscribes at once. */
  connect(id: string): Promise<void>;
  /** Publishes that the device is online. */
  publishOnline(id: string): Promise<unknown>;
  start(env?: Record<string, string>): Promise<StartedService>;
  /** Stores a call that waits an hour and runs at most once. */
  create(device_id: string, more?: Partial<CallInput<typeof jobs, "createCall">>): Promise<Execution>;
  read(id: string): Promise<Execution>;
  cancel(id: string, force?: boolean): Promise<Execution>;
  /** The methods of firmware, called as a gateway. */
  readonly firmware: Client<typeof jobs, (typeof firmwareMethods)[number]>;
  /** As `devices` does. */
  drop(device_id: string): Promise<void>;
}

const firmwareMethods = [
  "createFirmware",
  "listFirmware",
  "readFirmware",
  "deleteFirmware",
  "putContent",
  "endContent",
  "readContent",
] as const;

export const answered: CallAttempt = { sent: true, outcome: "result", result: "ok" };

const call = () => createCallContext({ timeoutMs: 10_000 });

/** Starts a broker and the fakes; the store is a SQLite file unless `storeUrl` is given. */
export async function startJobsFixture(storeUrl?: string): Promise<JobsFixture> {
  const broker = await startBroker();
  const folder = await tempFolder();
  const log = createLogger({ service: "test", level: "silent" });
  const connectAs = (name: string): Promise<Bus> =>
    connectBus({ url: broker.url, name, user: meshUser(name), password: broker.passwords[name] ?? "", log });
  const [ofDevices, ofBridge, ofGateway] = await Promise.all(
    ["devices", "rpc-bridge", "gateway"].map(connectAs),
  );
  if (ofDevices === undefined || ofBridge === undefined || ofGateway === undefined) throw new Error("no bus");
  const known = new Map<string, FakeDevice>();
  const events = await createPublisher(ofDevices, deviceEvents);
  const find = (id: string) => {
    const device = known.get(id);
    if (device === undefined) throw new ServiceError({ code: "not_found", reason: "device_not_found" });
    return device;
  };
  serve(
    ofDevices,
    devices,
    fakeContract(devices, {
      readPresence: async ({ id }) => ({ online: find(id).online }),
      readPresences: async ({ ids }) => ({ online: ids.filter((id) => known.get(id)?.online) }),
      async authorize({ id, action }, context) {
        const isListed = action.kind === "rpc" && find(id).permitted.includes(action.func);
        return isListed ? { query: null } : context.fail("rpc_not_permitted");
      },
    }),
  );
  serve(
    ofBridge,
    rpcBridge,
    fakeContract(rpcBridge, {
      async attemptCall({ device_id, method }) {
        const device = known.get(device_id);
        if (!device?.listens) return { sent: false, outcome: "nobody_listens" };
        device.received.push(method);
        return await device.answer(method);
      },
    }),
  );
  await Promise.all([ofDevices.flush(), ofBridge.flush()]);
  const ofDevicesClient = createClient(ofDevices, calls(jobs, ["dropDevice"]));
  const client = createClient(ofGateway, calls(jobs, ["createCall", "readExecution", "cancelExecution"]));
  const fixture: JobsFixture = {
    devices: known,
    add(id, more = {}) {
      const device = {
        online: false,
        listens: false,
        answer: () => answered,
        received: [],
        permitted: [],
        ...more,
      };
      known.set(id, device);
      return device;
    },
    async connect(id) {
      Object.assign(find(id), { online: true, listens: true });
      await fixture.publishOnline(id);
    },
    publishOnline: (id) => events.online({ id, timestamp: new Date().toISOString() }),
    start: (env = {}) =>
      startService("jobs", {
        ...broker.environmentOf("jobs"),
        STORE_URL: storeUrl ?? `sqlite:${join(folder.path, "jobs.db")}`,
        OPS_PORT: "0",
        ...env,
      }),
    create: (device_id, more) =>
      client.createCall(
        {
          device_id,
          func: "Echo",
          wait_ms: 3_600_000,
          attempts: 1,
          timeout_ms: 5_000,
          created_by: { kind: "master", key_id: "k" },
          ...more,
        },
        call(),
      ),
    read: (id) => client.readExecution({ id, principal: { kind: "master" } }, call()),
    cancel: (id, force = false) => client.cancelExecution({ id, force }, call()),
    firmware: createClient(ofGateway, calls(jobs, firmwareMethods)),
    async drop(device_id) {
      await ofDevicesClient.dropDevice({ device_id }, call());
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([ofDevices, ofBridge, ofGateway].map((bus) => bus.close()));
      await broker.stop();
      await folder.remove();
    },
  };
  return fixture;
}
