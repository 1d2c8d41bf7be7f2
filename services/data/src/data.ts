import type { data } from "@devmesh/contracts/data";
import { maxLatestLimit } from "@devmesh/contracts/model/data-record";
import type { Principal } from "@devmesh/contracts/principal";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Context } from "@devmesh/service-kit/rpc/context";
import type { CallInput, Implementation } from "@devmesh/service-kit/rpc/implementation";
import { mapStoreErrors } from "@devmesh/service-kit/rpc/map-store-errors";
import { MAX_REPLY_BYTES } from "@devmesh/service-kit/rpc/page";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import type { Purges } from "./retention/purge.ts";
import { createSeriesQueries } from "./series/series-queries.ts";
import { type DataStore, InvalidCursor, type RecordSelection } from "./store/data-store.ts";

/** What the use cases need. */
export interface DataOptions {
  readonly store: DataStore;
  readonly purges: Purges;
  readonly clock: Clock;
  /** Messages that wait in the broker; rejects while it cannot be asked. */
  readonly backlog: () => Promise<number>;
  /** How long records are kept, in milliseconds. */
  readonly keptMs: number;
}

type StoredQuery = CallInput<typeof data, "queryRecords">;
type QueryContext = Context<typeof data, "queryRecords">;
type DeviceQuery = CallInput<typeof data, "countTopics">;

/** Reserved in a reply for what surrounds the records. */
const envelopeBytes = 1_024;
/** A longer search returns what it has found, with a cursor. */
const maxSearchMs = 5_000;

/** Queries records, and deletes those of a device. */
export function createData(options: DataOptions): Implementation<typeof data> {
  const { store, purges, clock, backlog } = options;
  const series = createSeriesQueries(options);
  const implementation: Implementation<typeof data> = {
    async queryRecords(query, context) {
      const selection = selectionOf(query, context);
      const { skip, limit, after } = query;
      const page = {
        caller: callerOf(query),
        skip,
        limit,
        ...(after === undefined ? {} : { after }),
        maxBytes: MAX_REPLY_BYTES - envelopeBytes,
        searchMs: Math.min(maxSearchMs, context.deadline.remainingMs() / 2),
      };
      try {
        return await store.readPage(selection, page, context.signal);
      } catch (error) {
        if (error instanceof InvalidCursor) return context.fail("cursor_invalid");
        throw error;
      }
    },

    async readLatest(query, context) {
      const deviceId = requestedDevice(query, context);
      const { limit, after } = query;
      const page = {
        caller: callerOf(query),
        limit,
        ...(after === undefined ? {} : { after }),
        maxBytes: MAX_REPLY_BYTES - envelopeBytes,
      };
      try {
        return await store.readLatest(deviceId, page, context.signal);
      } catch (error) {
        if (error instanceof InvalidCursor) return context.fail("cursor_invalid");
        throw error;
      }
    },

    async listLatest({ limit, after }, context) {
      const page = {
        caller: "follower",
        limit,
        ...(after === undefined ? {} : { after }),
        maxBytes: MAX_REPLY_BYTES - envelopeBytes,
      };
      try {
        const { next, items } = await store.readLatest(null, page, context.signal);
        const shown = items.map(({ device_id, topic, timestamp }) => ({ device_id, topic, timestamp }));
        return { next, items: shown };
      } catch (error) {
        if (error instanceof InvalidCursor) return context.fail("cursor_invalid");
        throw error;
      }
    },

    async followRecords({ after, topics, device_ids, limit }, context) {
      const readAt = clock.now().toISOString();
      const request = {
        caller: "follower",
        after: after === null ? null : Number(after),
        ...(topics === undefined ? {} : { topics }),
        ...(device_ids === undefined ? {} : { deviceIds: device_ids }),
        limit,
        maxBytes: MAX_REPLY_BYTES - envelopeBytes,
      };
      try {
        const { records, next, atEnd } = await store.follow(request, context.signal);
        return { next: String(next), caught_up_at: atEnd ? readAt : null, records };
      } catch (error) {
        if (error instanceof InvalidCursor) return context.fail("cursor_invalid");
        throw error;
      }
    },

    async countTopics(query, context) {
      const deviceId = requestedDevice(query, context);
      const request = { caller: callerOf(query), most: maxLatestLimit };
      return { count: await store.countTopics(deviceId, request, context.signal) };
    },

    async readSeries(query, context) {
      const { principal, device_id } = query;
      if (principal.kind !== "public_key") requestedDevice(query, context);
      else if (principal.device_id !== device_id) return context.fail("device_mismatch");
      return await series.readSeries(query, context, callerOf(query));
    },

    async listSeries(query, context) {
      return await series.listSeries(requestedDevice(query, context), callerOf(query), context.signal);
    },

    async purgeDevice({ device_id }) {
      await purges.purge(device_id);
      return {};
    },

    async admitDevice({ device_id }, { signal }) {
      const moment = clock.now().getTime();
      await store.admitDevice(device_id, moment);
      // Messages of this millisecond are refused: those that follow the reply must be later.
      while (clock.now().getTime() === moment) await clock.sleep(1, signal);
      return {};
    },

    async readBacklog(_input, context) {
      return { waiting: await backlog().catch(() => context.fail("backlog_unknown")) };
    },
  };
  return mapStoreErrors(implementation, isStoreUnavailable);
}

/** The query, restricted to what its key may see. */
function selectionOf(query: StoredQuery, context: QueryContext): RecordSelection {
  const { principal, filter, since, until, topic, order = "asc" } = query;
  if (filter?.includes("\0")) return context.fail("filter_invalid");
  const deviceId = visibleDevice(principal, query, context);
  if (topic !== undefined && deviceId === undefined) return context.fail("topic_unbound");
  return {
    order,
    ...(deviceId === undefined ? {} : { deviceId }),
    ...(topic === undefined ? {} : { topic }),
    // Every record contains the empty string.
    ...(filter === undefined || filter === "" ? {} : { filter }),
    ...(since === undefined ? {} : { since: Date.parse(since) }),
    ...(until === undefined ? {} : { until: Date.parse(until) }),
  };
}

/** Reading is shared between keys, or devices where the call does not name the key. */
function callerOf({ caller, principal }: Pick<StoredQuery, "caller" | "principal">): string {
  if (caller !== undefined) return `key ${caller}`;
  return "device_id" in principal ? `device ${principal.device_id}` : principal.kind;
}

/** The device whose records the key may see and the caller wants; undefined for all. */
function visibleDevice(principal: Principal, query: StoredQuery, context: QueryContext): string | undefined {
  switch (principal.kind) {
    case "master":
      return query.device_id;
    case "public_key":
      if (query.topic === undefined) return context.fail("not_permitted");
      return bound(principal.device_id, query, context);
    case "device_key":
      return bound(principal.device_id, query, context);
    case "customer":
    case "device":
      return context.fail("not_permitted");
  }
}

function bound(deviceId: string, query: StoredQuery, context: QueryContext): string {
  if (query.device_id !== undefined && query.device_id !== deviceId) return context.fail("device_mismatch");
  return deviceId;
}

/** The device of a query that is about one, if the key may read all records of it. */
function requestedDevice(
  { principal, device_id }: DeviceQuery,
  context: Context<typeof data, "readLatest" | "countTopics" | "readSeries" | "listSeries">,
): string {
  switch (principal.kind) {
    case "master":
      return device_id;
    case "device_key":
      return principal.device_id === device_id ? device_id : context.fail("device_mismatch");
    case "public_key":
    case "customer":
    case "device":
      return context.fail("not_permitted");
  }
}
