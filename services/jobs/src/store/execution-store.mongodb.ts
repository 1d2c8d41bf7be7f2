import { randomUUID } from "node:crypto";
import {
  type CollectionDeclaration,
  isDuplicateKey,
  type MongoStore,
  unlessDuplicate,
} from "@devmesh/store/mongodb";
import { type ExecutionStore, laneOf, type StoredExecution } from "./execution-store.ts";

/** `document` is the JSON of the execution: a result's member names could be taken for operators. */
interface ExecutionRow {
  readonly _id: string;
  readonly device_id: string;
  readonly revision: number;
  readonly state: StoredExecution["state"];
  /** The device while it is sent, else absent. */
  readonly lane?: string;
  readonly due_at?: number;
  readonly not_before: number;
  readonly expires_at: number;
  readonly ended_at?: number;
  /** False once the device is deleted. */
  readonly listed: boolean;
  /** Who wrote this revision: a bulk write does not say which of its writes matched. */
  readonly writer?: string;
  readonly document: string;
}

interface SenderLease {
  readonly _id: "sender";
  readonly holder: string;
  /** Unix milliseconds of the server's clock. */
  readonly until: number;
}

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
    { name: "one_of_lane", key: { lane: 1 }, unique: true, sparse: true },
  ],
} as const satisfies CollectionDeclaration;

/** Filters by purpose; exported so that a test can ask the database for the plans. */
export const executionFilters = {
  ofDevice: (device_id: string, before: string) => ({ device_id, listed: true, _id: { $lt: before } }),
  due: (deviceIds: readonly string[], now: number) => ({
    device_id: { $in: [...deviceIds] },
    state: "queued" as const,
    not_before: { $lte: now },
    expires_at: { $gt: now },
  }),
  waitingAfter: (after: string) => ({ state: "queued" as const, device_id: { $gt: after } }),
  queuedOf: (device_id: string) => ({ device_id, state: "queued" as const }),
  sentOf: (lane: string) => ({ lane }),
  overdue: (now: number) => ({ due_at: { $lte: now } }),
  expired: (now: number) => ({ state: "queued" as const, expires_at: { $lte: now } }),
  endedBefore: (before: number) => ({ ended_at: { $lt: before } }),
} as const;

/** Executions in a MongoDB database, which all replicas share. */
export function createMongoExecutionStore({ db, run }: MongoStore): ExecutionStore {
  const executions = db.collection<ExecutionRow>(executionCollection.name);
  const leases = db.collection<SenderLease>("leases");

  const read = async (filter: object, limit: number, signal: AbortSignal) =>
    (await run(signal, () => executions.find(filter, { signal }).limit(limit).toArray())).map(
      storedExecution,
    );

  return {
    async insert(execution, { most, mostOfKind }, signal) {
      const waiting = await read(executionFilters.queuedOf(execution.device_id), most, signal);
      const { kind } = execution.created_by;
      if (waiting.length >= most) return false;
      if (waiting.filter(({ created_by }) => created_by.kind === kind).length >= mostOfKind) return false;
      const { $set } = changeTo(execution);
      await run(signal, () => executions.insertOne({ _id: execution.id, listed: true, ...$set }));
      return true;
    },

    async find(id, signal) {
      const row = await run(signal, () => executions.findOne({ _id: id }, { signal }));
      return row && { execution: storedExecution(row), listed: row.listed };
    },

    async list({ device_id, state, after = "~", limit }, signal) {
      const filter = { ...executionFilters.ofDevice(device_id, after), ...(state && { state }) };
      const rows = await run(signal, () =>
        executions.find(filter, { signal }).sort({ device_id: 1, _id: -1 }).limit(limit).toArray(),
      );
      return rows.map(storedExecution);
    },

    async findDue(deviceIds, now, signal) {
      const oldest = await run(signal, () =>
        executions
          .aggregate<{ first: string }>(
            [
              { $match: executionFilters.due(deviceIds, now) },
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
        const { $set, $unset } = changeTo(execution);
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

    async lease(holder, forMs, signal) {
      const [found, { localTime }] = await Promise.all([
        run(signal, () => leases.findOne({ _id: "sender" }, { signal })),
        run(signal, () => db.command({ hello: 1 }, { signal })),
      ]);
      const now = Number(localTime);
      const until = now + forMs;
      if (found === null)
        return await unlessDuplicate(run(signal, () => leases.insertOne({ _id: "sender", holder, until })));
      if (found.holder !== holder && found.until > now) return false;
      const { matchedCount } = await run(signal, () =>
        leases.updateOne(
          { _id: "sender", holder: found.holder, until: found.until },
          { $set: { holder, until } },
        ),
      );
      return matchedCount === 1;
    },

    async release(holder, signal) {
      await run(signal, () => leases.deleteOne({ _id: "sender", holder }));
    },
  };
}

/** The members of the row, and those that it must not have. */
function changeTo(execution: StoredExecution) {
  const { device_id, revision, state, due_at, not_before, expires_at, ended_at } = execution;
  const optional = { lane: laneOf(execution), due_at, ended_at };
  const present = Object.entries(optional).filter(([, value]) => value !== null);
  const absent = Object.entries(optional).filter(([, value]) => value === null);
  const document = JSON.stringify(execution);
  const members = { device_id, revision, state, not_before, expires_at, document };
  return {
    $set: {
      ...members,
      ...(Object.fromEntries(present) as Pick<ExecutionRow, "lane" | "due_at" | "ended_at">),
    },
    $unset: Object.fromEntries(absent.map(([name]) => [name, true])) as {
      [K in keyof typeof optional]?: true;
    },
  };
}

/** Trusts the JSON: only this adapter writes the collection. */
function storedExecution({ document }: ExecutionRow): StoredExecution {
  return JSON.parse(document);
}
