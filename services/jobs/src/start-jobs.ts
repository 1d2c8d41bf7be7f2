import { randomUUID } from "node:crypto";
import { deviceEvents } from "@devmesh/contracts/devices";
import { jobEvents } from "@devmesh/contracts/jobs";
import type { mesh } from "@devmesh/contracts/mesh";
import { type ActiveSubscription, subscribe } from "@devmesh/service-kit/events/subscription";
import { createLeadership } from "@devmesh/service-kit/leadership";
import type { StartService } from "@devmesh/service-kit/process/run-service";
import { repeat } from "@devmesh/service-kit/retry";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import { mapStoreErrors } from "@devmesh/service-kit/rpc/map-store-errors";
import { createIdSource } from "@devmesh/service-kit/sortable-id";
import { traceStore } from "@devmesh/service-kit/tracing/trace-store";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { openStore, parseStoreUrl } from "@devmesh/store/store-url";
import type { JobsEnv } from "./env.ts";
import { createExecutionEvents } from "./executions/execution-events.ts";
import { createDownloads } from "./firmware/downloads.ts";
import { createFirmwareFiles } from "./firmware/firmware-files.ts";
import { createSignatureCheck } from "./firmware/signature.ts";
import { urlOfTicket } from "./firmware/tickets.ts";
import { holdAll } from "./hold.ts";
import { createJobs } from "./jobs.ts";
import { createJobsMetrics } from "./metrics.ts";
import { createJobEvents } from "./rollout/job-events.ts";
import { createJobRunner } from "./rollout/job-runner.ts";
import { OpenJobs } from "./rollout/open-jobs.ts";
import { createPlanner } from "./rollout/planner.ts";
import { createSaveJob } from "./rollout/save-job.ts";
import { createShadowChanges } from "./rollout/shadow-changes.ts";
import { createCallSender } from "./sending/sender.ts";
import { createSweeps } from "./sending/sweeps.ts";
import type { StoredExecution } from "./store/execution-store.ts";
import { withJobActions } from "./store/job-actions.ts";
import type { StoredJob } from "./store/job-store.ts";
import { openSqliteJobsStore } from "./store/jobs-store.sqlite.ts";
import type { JobsStore } from "./store/jobs-store.ts";
import { createUpdates } from "./updates/updates.ts";

/** How often what is queued, overdue and old is looked at, in milliseconds. */
const sweepEveryMs = 25_000;
const overdueEveryMs = 1_000;
const removeEveryMs = 60_000;
/** How often uploads that were cut are removed, and digests of earlier releases added, in milliseconds. */
const tendFirmwareEveryMs = 600_000;

/** How often jobs are looked at, and the deltas of devices that have not reported, in milliseconds. */
const jobsEveryMs = 500;
const deltasEveryMs = 10_000;

/** How often updates are taken up that another replica has begun or changed, in milliseconds. */
const takeUpEveryMs = 2_000;

const readinessTimeoutMs = 1_000;

/** How long before the end of a drain what is under way is given up, in milliseconds. */
const drainMarginMs = 1_000;

/** Opens the store, and sends when it is this replica's turn. */
export const startJobs: StartService<typeof mesh.jobs, JobsEnv> = async (parts) => {
  const { env, bus, publisher, clients, log, clock, metrics: kit, signal: stopping } = parts;
  const { devices } = clients;
  const system = parseStoreUrl(env.STORE_URL).kind;
  const opened = await openJobsStore(env.STORE_URL, stopping);
  const store = withJobActions(
    traceStore(bus.tracer, opened.executions, { system, collection: "executions" }),
  );
  const newId = createIdSource(clock);
  const firmwareStore = traceStore(bus.tracer, opened.firmware, { system, collection: "firmware" });
  const isSigned = createSignatureCheck(env.FIRMWARE_PUBLIC_KEY);
  const firmware = createFirmwareFiles({
    store: firmwareStore,
    isInUse: async (id, signal) =>
      (await store.listOpenJobs(signal)).some(
        ({ action }) => action.kind === "firmware" && action.firmware_id === id,
      ),
    maxFile: env.FIRMWARE_MAX_FILE,
    maxBytes: env.FIRMWARE_MAX_BYTES,
    isSigned,
    newId,
    clock,
  });
  const otaUrl = env.OTA_PUBLIC_URL ?? env.PUBLIC_URL;
  const life = new AbortController();
  const common = { store, devices, clock, log, signal: life.signal };
  const open = new OpenJobs(
    (deviceIds) => sender.wake(deviceIds),
    () => updates.pushRoom,
    clock,
  );
  const onChanged = (after: StoredExecution, before: StoredExecution) => {
    open.count(after, before);
    updates.changed(after);
  };
  const events = createExecutionEvents({ publisher, onChanged, clock });
  const changes = createJobEvents(publisher, clock);
  if (env.JOBS_HOLD) await holdAll({ store, events, clock, signal: stopping });

  const leadership = createLeadership({
    leases: opened.leases,
    name: "sender",
    clock,
    log,
    signal: life.signal,
    holder: `${bus.replicaId}-${randomUUID()}`,
    onLead: () => void sweeps.wakeAll().catch(onFailure),
  });
  const leads = () => leadership.leads;
  const metrics = createJobsMetrics(kit.registry, {
    leads,
    inFlight: () => sender.inFlight,
    countOpen: () => store.countOpen(life.signal),
    countFirmwareBytes: () => opened.firmware.sumUploads(life.signal),
  });
  const mayBegin = () => leads() && bus.connected;
  const sender = createCallSender({
    ...common,
    gate: open,
    bridge: clients["rpc-bridge"],
    events,
    beginUpdates: (due) => updates.begin(due),
    mayBegin,
    maxInFlight: env.JOBS_IN_FLIGHT,
    metrics,
  });
  const shadows = createShadowChanges({ ...common, open, settle: sender.settle, events, leads });
  const updates = createUpdates({
    ...common,
    firmware: firmwareStore,
    isSigned,
    bridge: clients["rpc-bridge"],
    open,
    settle: sender.settle,
    tried: sender.tried,
    events,
    mayBegin,
    maxPushes: env.JOBS_PUSHES,
    urlOf: (ticket) => urlOfTicket(otaUrl ?? "", ticket),
  });
  const sweeps = createSweeps({
    ...common,
    sender,
    overdue: { shadow: shadows.overdue, firmware: updates.overdue },
    leads,
    retentionDays: env.JOBS_RETENTION_DAYS,
  });
  const save = createSaveJob({ ...common, open, events: changes, metrics });
  const runner = createJobRunner({
    ...common,
    open,
    planner: createPlanner({ ...common, open, events, save, newId }),
    wakeOnline: sweeps.wakeOnline,
    events,
    withdraw: updates.withdraw,
    save,
    leads,
  });
  const onFailure = (err: unknown) => {
    if (!life.signal.aborted) log.warn({ err }, "a sweep failed and is tried again");
  };

  const connecting = subscribe(
    bus,
    { events: deviceEvents, names: ["online"] },
    {
      online({ id }) {
        if (!leads()) return;
        sender.connected(id);
        updates.online(id);
        runner.connected(id);
      },
    },
    { mode: "each" },
  );
  const due = subscribe(
    bus,
    { events: jobEvents, names: ["due"] },
    {
      async due({ device_ids }) {
        if (leads()) await sweeps.wakeOnline(device_ids);
      },
    },
    { mode: "each" },
  );
  let reports: ActiveSubscription | undefined;
  /** Subscribes to changes of devices, which are many, while a job awaits reports. */
  async function followReports(): Promise<void> {
    if (!leads() || !(shadows.awaits || updates.awaitsReports)) {
      await reports?.stop();
      reports = undefined;
      return;
    }
    reports ??= subscribe(
      bus,
      { events: deviceEvents, names: ["updated"] },
      {
        updated({ device }) {
          shadows.updated(device);
          updates.updated(device.id);
        },
      },
      { mode: "each" },
    );
  }

  const whileRunning = { onFailure, clock, signal: AbortSignal.any([life.signal, stopping]) };
  const repeated = Promise.all([
    repeat(sweeps.wakeAll, { everyMs: sweepEveryMs, ...whileRunning }),
    repeat(sweeps.endOverdue, { everyMs: overdueEveryMs, ...whileRunning }),
    repeat(sweeps.removeEnded, { everyMs: removeEveryMs, ...whileRunning }),
    repeat(tendFirmware, { everyMs: tendFirmwareEveryMs, ...whileRunning }),
    repeat(correctCounts, { everyMs: removeEveryMs, ...whileRunning }),
    repeat(runner.tick, { everyMs: jobsEveryMs, ...whileRunning }),
    repeat(runner.work, { everyMs: jobsEveryMs, ...whileRunning }),
    repeat(shadows.send, { everyMs: jobsEveryMs, ...whileRunning }),
    repeat(shadows.readDeltas, { everyMs: deltasEveryMs, ...whileRunning }),
    repeat(updates.look, { everyMs: jobsEveryMs, ...whileRunning }),
    repeat(updates.takeUp, { everyMs: takeUpEveryMs, ...whileRunning }),
    repeat(followReports, { everyMs: jobsEveryMs, ...whileRunning }),
  ]);

  async function tendFirmware(): Promise<void> {
    if (!leads()) return;
    await firmware.removeBroken(life.signal);
    await firmware.addMd5s(life.signal);
  }
  async function correctCounts(): Promise<void> {
    if (leads())
      await Promise.all([store.correctJobCounts(life.signal), firmwareStore.correctCounts(life.signal)]);
  }

  function jobChanged(job: StoredJob, call: CallContext): void {
    changes.changed(job, { isUrgent: true, call });
    // Where this replica leads, it acts on it at once.
    if (open.get(job.id) !== undefined) open.set(job);
  }

  return {
    implementation: mapStoreErrors(
      {
        ...createJobs({
          ...common,
          firmware: firmwareStore,
          isSigned,
          canDownload: otaUrl !== undefined,
          withdraw: updates.withdraw,
          events,
          jobChanged,
          newId,
        }),
        ...firmware.implementation,
        ...createDownloads({ store, firmware: firmwareStore, events, clock }),
      },
      isStoreUnavailable,
    ),
    ready: () => opened.ping(AbortSignal.timeout(readinessTimeoutMs)),
    async stop() {
      await Promise.all([connecting.stop(), due.stop(), repeated]);
      await reports?.stop();
      // What was begun is settled before another replica leads.
      const settled = Promise.all([updates.stop(), sender.stop()]);
      await Promise.race([settled, clock.sleep(Math.max(0, env.DRAIN_MS - drainMarginMs))]);
      life.abort(new Error("the service stops"));
      await settled;
      await leadership.stop();
    },
    close: () => opened.close(),
  };
};

function openJobsStore(storeUrl: string, signal: AbortSignal): Promise<JobsStore> {
  const mongodb = async () => (await import("./store/jobs-store.mongodb.ts")).openMongoJobsStore;
  return openStore(parseStoreUrl(storeUrl), { sqlite: openSqliteJobsStore, mongodb }, signal);
}
