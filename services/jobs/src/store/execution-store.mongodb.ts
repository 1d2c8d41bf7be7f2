import { randomInt, randomUUID } from "node:crypto";
import {
  type CollectionDeclaration,
  isDuplicateKey,
  type MongoStore,
  unlessDuplicate,
} from "@devmesh/store/mongodb";
import {
  callEndOf,
  type ExecutionStore,
  laneOf,
  noExecutions,
  readExecution,
  type StoredExecution,
} from "./execution-store.ts";
import { mongoJobs } from "./job-store.mongodb.ts";

/** `document` is the JSON of the execution: a result's member names could be taken for operators. */
interface ExecutionRow {
  readonly _id: string;
  readonly device_id: string;
  /** Absent for a call, with its place. */
  readonly job_id?: string;
  readonly place?: number;
  readonly revision: number;
  readonly state: StoredExecution["state"];
  /** The device while it is sent, else absent. */
  readonly lane?: string;
  readonly due_at?: number;
  readonly not_before: number;
  readonly expires_at: number;
  /** Of a call alone. */
  readonly ended_at?: number;
  /** Absent where no attempt had one. */
  readonly ticket?: string;
  /** Of a new call while it is queued: one of as many as its device may have, so that no two calls take the last. */
  readonly slot?: string;
  /** And one of those of its kind of key. */
  readonly kind_slot?: string;
  /** False once the device is deleted. */
  readonly listed: boolean;
  /** Who wrote this revision: a bulk write does not say which of its writes matched. */
  readonly writer?: string;
  readonly document: string;
}

const inJob = { partialFilterExpression: { job_id: { $exists: true } } } as const;
const whileQueued = { partialFilterExpression: { state: "queued" } } as const;

export const executionCollection = {
  name: "executions",
  indexes: [
    {
      name: "of_device",
      key: { device_id: 1, _id: -1 },
      partialFilterExpression: { listed: true },
    },
    { name: "waiting", key: { device_id: 1, _id: 1 }, ...whileQueued },
    { name: "expiring", key: { expires_at: 1 }, ...whileQueued },
    { name: "due", key: { due_at: 1 }, sparse: true },
    { name: "ended", key: { ended_at: 1 }, sparse: true },
    { name: "one_of_job", key: { job_id: 1, device_id: 1 }, unique: true, ...inJob },
    { name: "of_job", key: { job_id: 1, place: 1 }, ...inJob },
    { name: "of_job_state", key: { job_id: 1, state: 1, place: 1 }, ...inJob },
    { name: "one_of_ticket", key: { ticket: 1 }, unique: true, sparse: true },
    { name: "one_of_lane", key: { lane: 1 }, unique: true, sparse: true },
    { name: "one_of_slot", key: { slot: 1 }, unique: true, sparse: true },
    { name: "one_of_kind_slot", key: { kind_slot: 1 }, unique: true, sparse: true },
  ],
} as const satisfies CollectionDeclaration;

/** Filters by purpose; exported so that a test can ask the database for the plans. */
export const executionFilters = {
  ofDevice: (device_id: string, before: string) => ({ device_id, listed: true, _id: { $lt: before } }),
  ofTicket: (ticket: string) => ({ ticket }),
  due: (deviceIds: readonly string[], now: number, released: ReadonlyMap<string, number>) => ({
    device_id: { $in: [...deviceIds] },
    state: "queued" as const,
    not_before: { $lte: now },
    expires_at: { $gt: now },
    $or: [
      { job_id: { $exists: false } },
      ...[...released].map(([job_id, place]) => ({ job_id, place: { $lte: place } })),
    ],
  }),
  ofJob: (job_id: string, after: number, upTo: number) => ({ job_id, place: { $gt: after, $lte: upTo } }),
  ofJobState: (job_id: string, state: StoredExecution["state"], after: number, upTo: number) => ({
    job_id,
    state,
    place: { $gt: after, $lte: upTo },
  }),
  devicesOfJob: (job_id: string, deviceIds: readonly string[]) => ({
    job_id,
    device_id: { $in: [...deviceIds] },
  }),
  callsOf: (device_id: string) => ({ device_id, state: "queued" as const, job_id: { $exists: false } }),
  waitingAfter: (after: string) => ({ state: "queued" as const, device_id: { $gt: after } }),
  queuedOf: (device_id: string) => ({ device_id, state: "queued" as const }),
  sentOf: (device: string) => ({
    $or: [{ lane: device }, { lane: { $gt: `${device}/`, $lt: `${device}0` } }],
  }),
  overdue: (now: number) => ({ due_at: { $lte: now } }),
  expired: (now: number) => ({ state: "queued" as const, expires_at: { $lte: now } }),
  endedBefore: (before: number) => ({ ended_at: { $lt: before } }),
} as const;

/** Executions in a MongoDB database, which all replicas share. */
export function createMongoExecutionStore({ db, run }: MongoStore): ExecutionStore {
  const executions = db.collection<ExecutionRow>(executionCollection.name);

  const read = async (filter: object, limit: number, signal: AbortSignal) =>
    (await run(signal, () => executions.find(filter, { signal }).limit(limit).toArray())).map(
      storedExecution,
    );

  return {
    async insert(execution, { most, mostOfKind }, signal) {
      const { device_id, created_by } = execution;
      for (;;) {
        const waiting = await run(signal, () =>
          executions.find(executionFilters.callsOf(device_id), { signal }).limit(most).toArray(),
        );
        const ofKind = waiting.filter((row) => storedExecution(row).created_by.kind === created_by.kind);
        const slot = freeSlot(
          waiting.map((row) => row.slot),
          device_id,
          most,
        );
        const kind_slot = freeSlot(
          ofKind.map((row) => row.kind_slot),
          `${device_id}/${created_by.kind}`,
          mostOfKind,
        );
        if (slot === null || kind_slot === null) return false;
        const row = { ...newRow(execution), slot, kind_slot };
        const inserted = run(signal, () => executions.insertOne(row));
        if (await unlessDuplicate(inserted, "one_of_slot", "one_of_kind_slot")) return true;
      }
    },

    async find(id, signal) {
      const row = await run(signal, () => executions.findOne({ _id: id }, { signal }));
      return row && { execution: storedExecution(row), listed: row.listed };
    },

    async findByTicket(digest, signal) {
      const [found] = await read(executionFilters.ofTicket(digest), 1, signal);
      return found ?? null;
    },

    async list({ device_id, state, after = "~", limit }, signal) {
      const filter = { ...executionFilters.ofDevice(device_id, after), ...(state && { state }) };
      const rows = await run(signal, () =>
        executions.find(filter, { signal }).sort({ device_id: 1, _id: -1 }).limit(limit).toArray(),
      );
      return rows.map(storedExecution);
    },

    async insertOfJob(created, signal) {
      if (created.length === 0) return new Set();
      const rows = created.map(newRow);
      await run(signal, () => executions.insertMany(rows, { ordered: false })).catch((error: unknown) => {
        // The job has that device already; all other writes were done.
        if (!isDuplicateKey(error, "one_of_job")) throw error;
      });
      const ids = created.map(({ id }) => id);
      const stored = await run(signal, () =>
        executions.find({ _id: { $in: ids } }, { projection: { _id: 1 }, signal }).toArray(),
      );
      return new Set(stored.map(({ _id }) => _id));
    },

    async listOfJob({ job_id, state, after = -1, upTo = Number.MAX_VALUE, limit }, signal) {
      const filter =
        state === undefined
          ? executionFilters.ofJob(job_id, after, upTo)
          : executionFilters.ofJobState(job_id, state, after, upTo);
      const rows = await run(signal, () =>
        executions.find(filter, { signal }).sort({ place: 1 }).limit(limit).toArray(),
      );
      return rows.map(storedExecution);
    },

    findOfJob: (jobId, deviceIds, signal) =>
      read(executionFilters.devicesOfJob(jobId, deviceIds), deviceIds.length, signal),

    async placeBeyond(jobId, place, count, signal) {
      const beyond = executionFilters.ofJob(jobId, place, Number.MAX_VALUE);
      const at = (direction: 1 | -1, skip: number) =>
        run(signal, () =>
          executions
            .find(beyond, { projection: { place: 1 }, signal })
            .sort({ place: direction })
            .skip(skip)
            .limit(1)
            .toArray(),
        );
      const [found] = await at(1, count - 1);
      if (found !== undefined) return { place: found.place ?? place, count };
      const [last] = await at(-1, 0);
      const rest = await run(signal, () => executions.countDocuments(beyond, { signal }));
      return { place: last?.place ?? place, count: rest };
    },

    async countStates(job_id, signal) {
      const counted = await run(signal, () =>
        executions
          .aggregate<{ _id: StoredExecution["state"]; n: number }>(
            [{ $match: { job_id } }, { $group: { _id: "$state", n: { $sum: 1 } } }],
            { signal },
          )
          .toArray(),
      );
      return { ...noExecutions, ...Object.fromEntries(counted.map(({ _id, n }) => [_id, n])) };
    },

    async findDue(deviceIds, now, released, signal) {
      const oldest = await run(signal, () =>
        executions
          .aggregate<{ first: string }>(
            [
              { $match: executionFilters.due(deviceIds, now, released) },
              { $group: { _id: "$device_id", first: { $min: "$_id" } } },
            ],
            { signal },
          )
          .toArray(),
      );
      const ids = oldest.map(({ first }) => first);
      return ids.length === 0 ? [] : await read({ _id: { $in: ids } }, ids.length, signal);
    },

    async change(changed, signal) {
      if (changed.length === 0) return new Set();
      const writer = randomUUID();
      const writes = changed.map((execution) => {
        const { $set, $unset: absent } = changeTo(execution);
        const isQueued = execution.state === "queued";
        const $unset = { ...absent, ...(!isQueued && ({ slot: true, kind_slot: true } as const)) };
        const filter = { _id: execution.id, revision: execution.revision - 1 };
        return { updateOne: { filter, update: { $set: { ...$set, writer }, $unset } } };
      });
      await run(signal, () => executions.bulkWrite(writes, { ordered: false })).catch((error: unknown) => {
        // A device's second execution; all other writes were done.
        if (!isDuplicateKey(error, "one_of_lane")) throw error;
      });
      const ids = changed.map(({ id }) => id);
      const own = await run(signal, () =>
        executions.find({ _id: { $in: ids }, writer }, { projection: { _id: 1 }, signal }).toArray(),
      );
      return new Set(own.map(({ _id }) => _id));
    },

    async listWaiting(after, limit, signal) {
      const rows = await run(signal, () =>
        executions
          .find(executionFilters.waitingAfter(after), { projection: { device_id: 1 }, signal })
          .sort({ device_id: 1 })
          .limit(limit)
          .toArray(),
      );
      return rows.map(({ device_id }) => device_id);
    },

    async listOverdue(now, limit, signal) {
      const filters = [executionFilters.overdue(now), executionFilters.expired(now)];
      return (await Promise.all(filters.map((filter) => read(filter, limit, signal)))).flat();
    },

    async listOpen(deviceId, limit, signal) {
      const filters = [executionFilters.sentOf(deviceId), executionFilters.queuedOf(deviceId)];
      return (await Promise.all(filters.map((filter) => read(filter, limit, signal)))).flat();
    },

    async unlist(device_id, signal) {
      const ofDevice = { device_id, listed: true };
      await run(signal, () => executions.updateMany(ofDevice, { $set: { listed: false } }));
    },

    async countOpen(signal) {
      const [queued, sent] = await Promise.all([
        run(signal, () => executions.countDocuments({ state: "queued" }, { signal })),
        run(signal, () => executions.countDocuments({ due_at: { $gt: 0 } }, { signal })),
      ]);
      return { queued, sent };
    },

    async removeEnded(before, limit, signal) {
      const rows = await run(signal, () =>
        executions
          .find(executionFilters.endedBefore(before), { projection: { _id: 1 }, signal })
          .limit(limit)
          .toArray(),
      );
      if (rows.length === 0) return 0;
      await run(signal, () => executions.deleteMany({ _id: { $in: rows.map(({ _id }) => _id) } }));
      return rows.length;
    },

    ...mongoJobs({ db, run }, async (job_id, limit, signal) => {
      const rows = await run(signal, () =>
        executions
          .find({ job_id }, { projection: { _id: 1 }, signal })
          .limit(limit)
          .toArray(),
      );
      await run(signal, () => executions.deleteMany({ _id: { $in: rows.map(({ _id }) => _id) } }));
      return rows.length;
    }),
  };
}

function newRow(execution: StoredExecution): ExecutionRow {
  const { id: _id, job_id, place } = execution;
  return { _id, listed: true, ...(job_id !== null && { job_id, place }), ...changeTo(execution).$set };
}

/** A slot that none has; null where there are `most`. One without a slot is queued again after an attempt. */
function freeSlot(taken: readonly (string | undefined)[], of: string, most: number): string | null {
  if (taken.length >= most) return null;
  const room = most - taken.filter((slot) => slot === undefined).length;
  const free = Array.from({ length: room }, (_, nth) => `${of}/${nth}`).filter(
    (slot) => !taken.includes(slot),
  );
  return free[randomInt(free.length)] ?? null;
}

/** The members of the row, and those that it must not have. */
function changeTo(execution: StoredExecution) {
  const { device_id, revision, state, due_at, not_before, expires_at, ticket } = execution;
  const optional = { lane: laneOf(execution), due_at, ended_at: callEndOf(execution), ticket };
  const present = Object.entries(optional).filter(([, value]) => value !== null);
  const absent = Object.entries(optional).filter(([, value]) => value === null);
  const document = JSON.stringify(execution);
  const members = { device_id, revision, state, not_before, expires_at, document };
  return {
    $set: {
      ...members,
      ...(Object.fromEntries(present) as Pick<ExecutionRow, keyof typeof optional>),
    },
    $unset: Object.fromEntries(absent.map(([name]) => [name, true])) as {
      [K in keyof typeof optional]?: true;
    },
  };
}

const storedExecution = ({ document }: ExecutionRow) => readExecution(document);
