import { deviceEvents, devices } from "@devmesh/contracts/devices";
import { jobs } from "@devmesh/contracts/jobs";
import type { Execution } from "@devmesh/contracts/model/execution";
import type { Job, JobPatch, JobTarget, JobTrial } from "@devmesh/contracts/model/job";
import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { ShadowPatch } from "@devmesh/contracts/model/shadow";
import { type CallAttempt, rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { calls } from "@devmesh/contracts/topology";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { isReason, ServiceError } from "@devmesh/service-kit/errors";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { createLogger } from "@devmesh/service-kit/logger";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { CallInput, Client } from "@devmesh/service-kit/rpc/implementation";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { meshUser } from "@devmesh/service-kit/subjects";
import { startBroker } from "@devmesh/testkit/broker";
import { eventually } from "@devmesh/testkit/eventually";
import { fakeContract, fakeDevice } from "@devmesh/testkit/fakes";
import { type StartedService, startService } from "@devmesh/testkit/service-process";

/** A device of the fakes. */
interface FakeDevice {
  online: boolean;
  /** When it connected last, in Unix milliseconds. */
  connectedAt: number;
  /** Whether it has subscribed to its calls. */
  listens: boolean;
  /** Until when nobody knows that it does not listen. */
  undecided?: Promise<unknown>;
  /** What it answers to a call; it may wait. */
  answer: (func: string, params: Json | undefined) => CallAttempt | Promise<CallAttempt>;
  /** The functions that it was sent, in order. */
  readonly received: string[];
  /** Those of them of which an event was published. */
  readonly loud: string[];
  /** The functions of its ACL. */
  permitted: readonly string[];
  /** Its shadow; what a job desires replaces what was desired before. */
  desired: JsonObject;
  reported: JsonObject;
  /** Times of what it reported. */
  reportedAt: JsonObject;
  labels: readonly string[];
  /** One more with each change of its shadow. */
  version: number;
  /** What a change of its shadow waits for. */
  patch?: () => Promise<unknown>;
}

/** A store that is removed with its disposal. */
interface TestStore extends AsyncDisposable {
  readonly storeUrl: string;
  endLeases(): Promise<void>;
  /** The server of the store dies with all connections, and is back a moment later; absent where it is a file. */
  readonly interrupt?: () => Promise<void>;
}

/** The broker of a mesh with fakes of `devices` and `rpc-bridge`, and a process of the service. */
export interface JobsFixture extends AsyncDisposable {
  /** The process that runs. */
  readonly service: StartedService;
  /** Ends the process, if one runs, and starts another one with this environment, which leads at once. */
  restart(env?: Readonly<Record<string, string>>, signal?: NodeJS.Signals): Promise<void>;
  /** Kills the process and starts another one, which leads once the lease of the former is over. */
  takeOver(): Promise<void>;
  /** The bridge dies with the calls that it has under way, and another one starts. */
  restartBridge(): Promise<void>;
  /** The broker is killed and starts again. */
  restartBroker(): Promise<void>;
  /** The server of the store is away for a moment; undefined where there is none. */
  readonly interruptStore: (() => Promise<void>) | undefined;
  /** Ends the process; the next one has an empty store. */
  newStore(): Promise<void>;
  /** Ends what a test has left, and forgets its devices. */
  clear(): Promise<void>;
  readonly devices: Map<string, FakeDevice>;
  add(id: string, device?: Partial<FakeDevice>): FakeDevice;
  /** The device connects, and subscribes at once. */
  connect(id: string): Promise<void>;
  /** Publishes that the device is online. */
  publishOnline(id: string): Promise<unknown>;
  /** Stores a call that waits an hour and runs at most once. */
  create(device_id: string, more?: Partial<CallInput<typeof jobs, "createCall">>): Promise<Execution>;
  read(id: string): Promise<Execution>;
  cancel(id: string, force?: boolean): Promise<Execution>;
  /** The methods of firmware, called as a gateway. */
  readonly firmware: Client<typeof jobs, (typeof firmwareMethods)[number]>;
  createJob(job: CallInput<typeof jobs, "createJob">["job"]): Promise<Job>;
  readJob(id: string): Promise<Job>;
  changeJob(id: string, patch: JobPatch): Promise<Job>;
  /** Waits until a job is in this state. */
  jobBecomes(id: string, state: Job["state"]): Promise<Job>;
  /** Waits until a job has so many executions in these states. */
  counted(id: string, counts: Readonly<Partial<Job["counts"]>>): Promise<void>;
  listJobs(): Promise<readonly Job[]>;
  tryTarget(target: JobTarget, firmware_id?: string): Promise<JobTrial>;
  /** Page by page, in the order of the rollout. */
  listJobExecutions(
    id: string,
    more?: { readonly state?: Execution["state"] },
  ): Promise<readonly Execution[]>;
  /** The device reports a state, of which an event is published. */
  report(id: string, reported: JsonObject): Promise<void>;
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
/** The reason of a call that fails. */
export const reasonOf = (answer: Promise<unknown>) =>
  answer.then(
    () => "answered",
    (error: unknown) => (error instanceof ServiceError ? error.reason : String(error)),
  );

export const answered: CallAttempt = { sent: true, outcome: "result", result: "ok" };

/** What a device has not reported of what is desired; whole members. */
const deltaOf = ({ desired, reported }: FakeDevice): JsonObject =>
  Object.fromEntries(
    Object.entries(desired).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(reported[name]),
    ),
  );

/** A merge patch (RFC 7396) applied. */
function merged(target: JsonObject, patch: JsonObject): JsonObject {
  const all = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    const before = all[name];
    if (value === null) delete all[name];
    else all[name] = isJsonObject(value) ? merged(isJsonObject(before) ? before : {}, value) : value;
  }
  return all;
}

/** The times of the leaves of a state. */
function timesOf(state: JsonObject, timestamp: number): JsonObject {
  return Object.fromEntries(
    Object.entries(state).map(([name, value]) => [
      name,
      isJsonObject(value) ? timesOf(value, timestamp) : { timestamp },
    ]),
  );
}

const call = () => createCallContext({ timeoutMs: 10_000 });

/** Starts a broker, the fakes and the service. */
export async function startJobsFixture(openStore: () => Promise<TestStore>): Promise<JobsFixture> {
  const broker = await startBroker();
  const log = createLogger({ service: "test", level: "silent" });
  const connectAs = (name: string): Promise<Bus> =>
    connectBus({ url: broker.url, name, user: meshUser(name), password: broker.passwords[name] ?? "", log });
  const [ofDevices, ofGateway] = await Promise.all([connectAs("devices"), connectAs("gateway")]);
  const known = new Map<string, FakeDevice>();
  let cleared = Promise.withResolvers<CallAttempt>();
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
      readPresence: async ({ id }) => {
        const { online, connectedAt } = find(id);
        return { online, connected_at: online ? new Date(connectedAt).toISOString() : null };
      },
      readPresences: async ({ ids }) => ({ online: ids.filter((id) => known.get(id)?.online) }),
      async selectDevices({ where, ids, after = "", limit }, context) {
        if (where.labels?.all?.includes("unreadable")) return context.fail("too_many_scans");
        const wanted = where.labels?.all ?? [];
        const all = [...known.keys()]
          .filter((id) => id > after && (ids?.includes(id) ?? true))
          .filter((id) => wanted.every((label) => find(id).labels.includes(label)))
          .sort();
        const items = all.slice(0, limit);
        return { next: all.length > limit ? (items.at(-1) ?? null) : null, items };
      },
      readDevice: async ({ id }) => ({ etag: "1", device: shown(id, find(id)) as never }),
      async patchDevice({ id, patch }, context) {
        const device = find(id);
        await device.patch?.();
        const { state, version } = ShadowPatch.parse(patch.shadow);
        if (version !== undefined && version !== device.version)
          return context.fail("version_conflict", { version: device.version });
        device.desired = merged(device.desired, state?.desired ?? {});
        device.version++;
        return { etag: "1", device: shown(id, device) as never };
      },
      readDelta: async ({ id }) => ({
        ...{ metadata: {}, version: 1, timestamp: 1 },
        state: deltaOf(find(id)),
      }),
      async authorize({ id, action }, context) {
        const isListed = action.kind === "rpc" && find(id).permitted.includes(action.func);
        return isListed ? { query: null } : context.fail("rpc_not_permitted");
      },
    }),
  );
  const bridge = fakeContract(rpcBridge, {
    async attemptCall({ device_id, method, params, quiet }) {
      const device = known.get(device_id);
      if (!device?.listens) {
        await device?.undecided;
        return { sent: false, outcome: "nobody_listens" };
      }
      device.received.push(method);
      if (!quiet) device.loud.push(method);
      return await Promise.race([device.answer(method, params), cleared.promise]);
    },
  });
  async function startBridge(): Promise<Bus> {
    const bus = await connectAs("rpc-bridge");
    serve(bus, rpcBridge, bridge);
    await bus.flush();
    return bus;
  }
  let ofBridge = await startBridge();
  await ofDevices.flush();
  const ofDevicesClient = createClient(ofDevices, calls(jobs, ["dropDevice"]));
  const shown = (id: string, { desired, reported, reportedAt, version, online }: FakeDevice) => {
    const device = fakeDevice(id, { online });
    const state = { desired, reported, delta: deltaOf(find(id)) };
    const metadata = { desired: {}, reported: reportedAt };
    return { ...device, shadow: { ...device.shadow, state, metadata, version } };
  };
  const client = createClient(
    ofGateway,
    calls(jobs, [
      "createCall",
      "readExecution",
      "cancelExecution",
      "tryTarget",
      "createJob",
      "listJobs",
      "readJob",
      "changeJob",
      "listJobExecutions",
    ]),
  );
  const by = { kind: "master", key_id: "k" } as const;
  let store = await openStore();
  let given: Readonly<Record<string, string>> = {};
  const start = () =>
    startService("jobs", {
      ...broker.environmentOf("jobs"),
      STORE_URL: store.storeUrl,
      OPS_PORT: "0",
      PUBLIC_URL: "https://mesh.example.com/",
      ...given,
    });
  let service = await start();
  const fixture: JobsFixture = {
    get service() {
      return service;
    },
    async restart(env = {}, signal = "SIGKILL") {
      await service.end(signal);
      await store.endLeases();
      given = env;
      service = await start();
    },
    async takeOver() {
      await service.end("SIGKILL");
      service = await start();
    },
    async restartBridge() {
      await ofBridge[natsConnection].close();
      ofBridge = await startBridge();
    },
    restartBroker: () => broker.restart(),
    get interruptStore() {
      return store.interrupt;
    },
    async newStore() {
      await service.end("SIGKILL");
      await store[Symbol.asyncDispose]();
      store = await openStore();
    },
    async clear() {
      // The settings of one test are not those of the next one.
      if (Object.keys(given).length > 0) await fixture.restart();
      // What waits for an answer would delay the end of the service.
      cleared.resolve({ sent: true, outcome: "gone" });
      cleared = Promise.withResolvers();
      for (const id of known.keys()) await fixture.drop(id);
      const open = (await fixture.listJobs()).filter(({ ended_at }) => ended_at === null);
      for (const { id } of open)
        await fixture.changeJob(id, { state: "cancelled", force: true }).catch((error: unknown) => {
          // It may have ended by itself since it was read.
          if (!isReason(error, "job_ended")) throw error;
        });
      await eventually(async () =>
        (await fixture.listJobs()).every(({ counts }) => counts.queued + counts.sent === 0),
      );
      known.clear();
    },
    devices: known,
    add(id, more = {}) {
      const device = {
        online: false,
        connectedAt: 0,
        listens: false,
        answer: () => answered,
        received: [],
        loud: [],
        permitted: [],
        desired: {},
        reported: {},
        reportedAt: {},
        labels: [],
        version: 1,
        ...more,
      };
      known.set(id, device);
      return device;
    },
    async connect(id) {
      Object.assign(find(id), { online: true, listens: true, connectedAt: Date.now() });
      await fixture.publishOnline(id);
    },
    publishOnline: (id) => events.online({ id, timestamp: new Date().toISOString() }),
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
    createJob: (job) => client.createJob({ job, created_by: by }, call()),
    readJob: (id) => client.readJob({ id }, call()),
    changeJob: (id, patch) => client.changeJob({ id, patch, by }, call()),
    jobBecomes: (id, wanted) =>
      eventually(async () => {
        const job = await fixture.readJob(id);
        return job.state === wanted ? job : null;
      }),
    async counted(id, wanted) {
      await eventually(async () => {
        const { counts } = await fixture.readJob(id);
        return Object.entries(wanted).every(([state, count]) => counts[state as "sent"] === count);
      });
    },
    listJobs: async () => (await client.listJobs({}, call())).items,
    tryTarget: (target, firmware_id) =>
      client.tryTarget({ target, ...(firmware_id !== undefined && { firmware_id }) }, call()),
    async listJobExecutions(id, more = {}) {
      const found: Execution[] = [];
      for (let after: string | null | undefined; after !== null; ) {
        const asked = { id, ...more, limit: 3, ...(after !== undefined && { after }) };
        const { items, next } = await client.listJobExecutions(asked, call());
        found.push(...items);
        after = next;
      }
      return found;
    },
    async report(id, reported) {
      const device = Object.assign(find(id), { reported, reportedAt: timesOf(reported, Date.now()) });
      device.version++;
      await events.updated({ id, timestamp: new Date().toISOString(), device: shown(id, device) });
    },
    async drop(device_id) {
      await ofDevicesClient.dropDevice({ device_id }, call());
    },
    async [Symbol.asyncDispose]() {
      await service.end("SIGKILL");
      await Promise.all([ofDevices, ofBridge, ofGateway].map((bus) => bus.close()));
      await broker.stop();
      await store[Symbol.asyncDispose]();
    },
  };
  return fixture;
}
