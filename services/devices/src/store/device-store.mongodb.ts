import { firmwareVersion } from "@devmesh/contracts/model/fleet";
import { labelsOf } from "@devmesh/contracts/model/labels";
import {
  type CollectionDeclaration,
  isDuplicateKey,
  type MongoStore,
  openMongo,
  unlessDuplicate,
} from "@devmesh/store/mongodb";
import type { MongoUrl } from "@devmesh/store/store-url";
import type { OperationKind, PendingOperation } from "../pending-operation.ts";
import { boardCollection, createMongoBoardStore } from "./board-store.mongodb.ts";
import type {
  DeviceDocument,
  DeviceStore,
  SavedViews,
  StoredCondition,
  StoredDevice,
} from "./device-store.ts";
import { cutFacet } from "./facet-count.ts";
import { cursorOf, type OrderedRange, placeOf, rangesAfter } from "./list-order.ts";

/**
 * A device as one document, so that each write is one compare-and-set. ACL and shadow are compact JSON: as documents
 * their owner's member names could be taken for operators.
 */
interface DeviceRow {
  /** The device's id. */
  readonly _id: string;
  readonly position: number;
  readonly name: string | null;
  readonly labels: readonly string[];
  /** The reported version. */
  readonly firmware: string | null;
  readonly revision: number;
  readonly created_at: number;
  readonly last_seen: number | null;
  /** The last published presence. */
  readonly online: boolean;
  /** Whether its pending operation hides it. */
  readonly hidden: boolean;
  /** The pending operation; absent where there is none. */
  readonly mark?: PendingOperation;
  readonly acl: string;
  readonly shadow: string;
  /** Absent of a device that an earlier release stored. */
  readonly delta_metadata?: boolean;
}

const listedMembers = { position: 1, created_at: 1, firmware: 1, labels: 1, last_seen: 1 } as const;
const orderedMembers = { version: "firmware", last_seen: "last_seen" } as const;
type ListedRow = Pick<DeviceRow, "_id" | keyof typeof listedMembers>;

/** The last assigned position; one document. */
interface Counter {
  readonly _id: "device_position";
  readonly last: number;
}

/** One document; absent before the first change. */
interface ViewsRow extends SavedViews {
  readonly _id: "views";
}

const oneOfPosition = "one_of_position";

export const deviceCollection = {
  name: "devices",
  indexes: [
    { name: oneOfPosition, key: { position: 1 }, unique: true },
    { name: "marked", key: { "mark.kind": 1 }, sparse: true },
    // Counts are answered by the index alone: documents are large.
    { name: "fleet", key: { firmware: 1, online: 1, last_seen: 1, created_at: 1, hidden: 1 } },
    { name: "by_version", key: { firmware: 1, position: 1 } },
    { name: "by_last_seen", key: { last_seen: 1, position: 1 } },
    { name: "by_label", key: { labels: 1, position: 1 } },
    { name: "told_online", key: { online: 1 }, partialFilterExpression: { online: true } },
  ],
} as const satisfies CollectionDeclaration;

const operationKinds: readonly OperationKind[] = ["creating", "deleting", "rotating"];

/** Filters by purpose; exported so that a test can ask the database for the plans. */
export const deviceQueries = {
  visible: (id: string) => ({ _id: id, hidden: false }),
  visibleAmong: (ids: readonly string[]) => ({ _id: { $in: [...ids] }, hidden: false }),
  after: (position: number) => ({ position: { $gt: position }, hidden: false }),
  before: (position: number) => ({ position: { $lt: position }, hidden: false }),
  between: (position: number, last: number) => ({ position: { $gt: position, $lte: last }, hidden: false }),
  /** A range of a list that is ordered by a member. */
  inRange: (member: "firmware" | "last_seen", range: OrderedRange, descending: boolean) => {
    const beyond = descending ? "$lt" : "$gt";
    if ("value" in range) {
      const following = range.after !== null && { position: { [beyond]: range.after } };
      return { [member]: range.value, ...following, hidden: false };
    }
    // A comparison with a value finds values of its type alone.
    const each = { $gte: member === "firmware" ? "" : 0 };
    return { [member]: range.beyond === null ? each : { [beyond]: range.beyond }, hidden: false };
  },
  /** Combined with one of those above, or with `shown`. */
  meeting: conditionFilter,
  shown: () => ({ hidden: false }),
  online: () => ({ online: true }),
  marked: () => ({ "mark.kind": { $in: [...operationKinds] } }),
} as const;

/** A condition as a filter. */
function conditionFilter(condition: StoredCondition): object {
  const { words = [], noWords = [], labels = [], noLabels = [], contained = [] } = condition;
  const { versions, noVersions = [], online, silentSince, seenSince, ids, noIds = [] } = condition;
  const withWord = (word: string) => {
    const substring = { $regex: literally(word) };
    return { $or: [{ _id: substring }, { name: substring }, { labels: substring }] };
  };
  const silent = (since: number) => ({
    online: false,
    $or: [{ last_seen: { $lt: since } }, { last_seen: null, created_at: { $lt: since } }],
  });
  const terms: object[] = [
    ...words.map(withWord),
    ...labels.map((label) => ({ labels: label })),
    ...contained.map((text) => ({ shadow: { $regex: literally(text) } })),
  ];
  const nor: object[] = noWords.map(withWord);
  if (noLabels.length > 0) terms.push({ labels: { $nin: noLabels } });
  if (versions !== undefined) terms.push({ firmware: { $in: versions } });
  if (noVersions.length > 0) terms.push({ firmware: { $nin: noVersions } });
  if (online !== undefined) terms.push({ online });
  if (silentSince !== undefined) terms.push(silent(silentSince));
  if (seenSince !== undefined) nor.push(silent(seenSince));
  if (ids !== undefined) terms.push({ _id: { $in: ids } });
  if (noIds.length > 0) terms.push({ _id: { $nin: noIds } });
  return { ...(terms.length > 0 && { $and: terms }), ...(nor.length > 0 && { $nor: nor }) };
}

/** Which positions are listed. */
interface PlaceListing {
  readonly descending: boolean;
  /** Null for the start of the list. */
  readonly after: number | null;
  readonly limit: number;
  /** Positions in the first portion. */
  readonly portion: number;
}

/** Reports of presence that are written together. */
const reportBatchSize = 200;
/** Values of a facet that are read; of more, the rarest are counted together. */
const maxCountedValues = 10_000;
/** Positions in the first portion of a list, for each wanted device, and most of a filtered one. */
const positionsPerDevice = { ofAll: 2, filtered: 10 } as const;
const filterBatchSize = 5_000;

/**
 * Devices in a MongoDB database, which all replicas of the service share.
 * @throws StoreUnavailable when no server answers in time.
 */
export async function openMongoDeviceStore(url: MongoUrl, signal: AbortSignal): Promise<DeviceStore> {
  return createMongoDeviceStore(await openMongo(url, [deviceCollection, boardCollection], signal));
}

function createMongoDeviceStore({ db, run, ping, close }: MongoStore): DeviceStore {
  const devices = db.collection<DeviceRow>(deviceCollection.name);
  const counters = db.collection<Counter>("counters");
  const savedViews = db.collection<ViewsRow>("saved_views");

  /** Ascends over all replicas; unused positions are skipped. */
  async function nextPosition(signal: AbortSignal): Promise<number> {
    const _id = "device_position";
    for (;;) {
      const counted = await run(signal, () =>
        counters.findOneAndUpdate({ _id }, { $inc: { last: 1 } }, { returnDocument: "after" }),
      );
      if (counted !== null) return counted.last;
      await unlessDuplicate(run(signal, () => counters.insertOne({ _id, last: 0 })));
    }
  }

  /**
   * Positions after `after` in the order of the list. Portions keep the database's sort and an aborted call cheap; they
   * grow because old stretches have few devices left.
   */
  async function listPlaces(
    condition: object,
    { descending, after, limit, portion }: PlaceListing,
    signal: AbortSignal,
  ) {
    const places: ListedRow[] = [];
    const counted = await run(signal, () => counters.findOne({}, { signal }));
    const newest = counted?.last ?? 0;
    let from = after ?? (descending ? Number.POSITIVE_INFINITY : 0);
    for (let width = portion; ; width *= 2) {
      const until = descending ? Math.min(from, newest + 1) - width : from + width;
      const isLast = descending ? until <= 1 : until >= newest;
      let between = descending ? deviceQueries.before(from) : deviceQueries.after(from);
      if (!isLast)
        between = descending
          ? deviceQueries.between(until - 1, from - 1)
          : deviceQueries.between(from, until);
      const found = await run(signal, () =>
        devices
          .find({ ...between, ...condition }, { projection: listedMembers, signal })
          .sort({ position: descending ? -1 : 1 })
          .limit(limit - places.length)
          .toArray(),
      );
      places.push(...found);
      if (isLast || places.length >= limit) return places;
      from = until;
    }
  }

  return {
    exclusive: false,
    ...createMongoBoardStore({ db, run }),

    async insert(device, operation, signal) {
      for (;;) {
        const row = rowOf(device, operation, await nextPosition(signal));
        try {
          await run(signal, () => devices.insertOne(row));
          return "inserted";
        } catch (error) {
          // A counter from an old backup catches up with the devices.
          if (isDuplicateKey(error, oneOfPosition)) continue;
          if (!isDuplicateKey(error)) throw error;
        }
        const owner = await run(signal, () =>
          devices.findOne({ _id: device.id }, { projection: { mark: 1 }, signal }),
        );
        // Removed in between: the id is free again.
        if (owner !== null) return owner.mark?.kind === "deleting" ? "being_deleted" : "exists";
      }
    },

    async find(id, signal) {
      const row = await run(signal, () => devices.findOne(deviceQueries.visible(id), { signal }));
      return row && storedDevice(row);
    },

    async has(id, signal) {
      const row = await run(signal, () =>
        devices.findOne(deviceQueries.visible(id), { projection: { _id: 1 }, signal }),
      );
      return row !== null;
    },

    async labelsOf(id, signal) {
      const row = await run(signal, () =>
        devices.findOne({ _id: id }, { projection: { labels: 1 }, signal }),
      );
      return row?.labels ?? [];
    },

    async replace(device, revision, signal) {
      const { matchedCount } = await run(signal, () =>
        devices.updateOne(
          { ...deviceQueries.visible(device.id), revision },
          { $set: documentMembers(device), $inc: { revision: 1 } },
        ),
      );
      return matchedCount === 1;
    },

    async list({ by, descending = false, after, condition = {}, limit }, signal) {
      const place = after === undefined ? null : placeOf(after, by);
      if (place === null && after !== undefined) return null;
      const filter = deviceQueries.meeting(condition);
      const member = by && orderedMembers[by];
      const rows: ListedRow[] = [];
      if (member === undefined) {
        const isFiltered = Object.keys(filter).length > 0;
        const portion = isFiltered
          ? Math.min(positionsPerDevice.filtered * limit, filterBatchSize)
          : positionsPerDevice.ofAll * limit;
        const listing = { descending, after: place?.position ?? null, limit, portion };
        rows.push(...(await listPlaces(filter, listing, signal)));
      } else {
        const direction = descending ? -1 : 1;
        for (const range of rangesAfter(place, descending)) {
          const found = await run(signal, () =>
            devices
              .find(
                { ...deviceQueries.inRange(member, range, descending), ...filter },
                { projection: listedMembers, signal },
              )
              .sort({ [member]: direction, position: direction })
              .limit(limit - rows.length)
              .toArray(),
          );
          rows.push(...found);
          if (rows.length >= limit) break;
        }
      }
      return rows.map((row) => {
        const { _id, position, created_at, firmware, labels } = row;
        const cursor = cursorOf(
          member === undefined ? { position } : { position, value: row[member] ?? null },
        );
        return { id: _id, cursor, created_at, version: firmware ?? null, labels };
      });
    },

    async findAll(ids, signal) {
      const rows = await run(signal, () =>
        devices.find(deviceQueries.visibleAmong(ids), { signal }).toArray(),
      );
      return rows.map(storedDevice);
    },

    count(condition, signal) {
      // Counted, since an estimate is off after a crash of the database.
      const shown = { ...deviceQueries.shown(), ...deviceQueries.meeting(condition) };
      return run(signal, () => devices.countDocuments(shown, { signal }));
    },

    async countBy(facet, condition, signal) {
      const shown = { $match: { ...deviceQueries.shown(), ...deviceQueries.meeting(condition) } };
      const countsOf = async (...stages: object[]) => {
        const rows = await run(signal, () => devices.aggregate([shown, ...stages], { signal }).toArray());
        return rows.map(({ _id, count }) => ({ value: _id ?? null, count }));
      };
      const groupBy = (_id: string | null, $sum: unknown) => ({ $group: { _id, count: { $sum } } });
      const frequent = [{ $sort: { count: -1, _id: 1 } }, { $limit: maxCountedValues }];
      // Many devices have the labels of others: they are taken apart once.
      const perLabel = [groupBy("$labels", 1), { $unwind: "$_id" }, groupBy("$_id", "$count")];
      const grouped = facet === "label" ? perLabel : [groupBy("$firmware", 1)];
      const values = await countsOf(...grouped, ...frequent);
      if (values.length < maxCountedValues) return cutFacet(values);
      const [all] = await countsOf(groupBy(null, facet === "label" ? { $size: "$labels" } : 1));
      return cutFacet(values, all?.count);
    },

    async countByFirmware(times, signal) {
      const isSilent = (time: number) => ({
        $and: [{ $eq: ["$online", false] }, { $lt: [{ $ifNull: ["$last_seen", "$created_at"] }, time] }],
      });
      const silent = times.map((time, nth) => [`silent_${nth}`, { $sum: { $cond: [isSilent(time), 1, 0] } }]);
      const online = { $sum: { $cond: ["$online", 1, 0] } };
      const group = { _id: "$firmware", devices: { $sum: 1 }, online, ...Object.fromEntries(silent) };
      const rows = await run(signal, () =>
        devices
          .aggregate([{ $match: { hidden: false } }, { $group: group }], { hint: "fleet", signal })
          .toArray(),
      );
      return rows.map((row) => ({
        version: row._id ?? null,
        devices: row.devices,
        online: row.online,
        silent: times.map((_, nth) => row[`silent_${nth}`]),
      }));
    },

    async recordPresence(reports, signal) {
      // Every replica writes nearly the same devices: one order avoids deadlocks.
      const inOrder = reports.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      for (let from = 0; from < inOrder.length; from += reportBatchSize) {
        const updates = inOrder.slice(from, from + reportBatchSize).map(({ id, online, seen_at }) => ({
          updateOne: { filter: { _id: id }, update: { $set: { online }, $max: { last_seen: seen_at } } },
        }));
        await run(signal, () => devices.bulkWrite(updates, { ordered: false }));
      }
    },

    async listOnline(signal) {
      const rows = await run(signal, () =>
        devices.find(deviceQueries.online(), { projection: { _id: 1 }, signal }).toArray(),
      );
      return rows.map(({ _id }) => _id);
    },

    async beginOperation(id, from, operation, signal) {
      const { matchedCount } = await run(signal, () =>
        devices.updateOne(
          { _id: id, "mark.kind": { $in: [...from] } },
          { $set: operationMembers(operation) },
        ),
      );
      return matchedCount === 1;
    },

    async replaceOperation(id, token, operation, signal) {
      const change =
        operation === null
          ? { $set: { hidden: false }, $unset: { mark: 1 } as const }
          : { $set: operationMembers(operation) };
      const { matchedCount } = await run(signal, () =>
        devices.updateOne({ _id: id, "mark.token": token }, change),
      );
      return matchedCount === 1;
    },

    async remove(id, token, signal) {
      const { deletedCount } = await run(signal, () => devices.deleteOne({ _id: id, "mark.token": token }));
      return deletedCount === 1;
    },

    async listOperations(signal) {
      const rows = await run(signal, () =>
        devices.find(deviceQueries.marked(), { projection: { mark: 1 }, signal }).toArray(),
      );
      return rows.flatMap(({ _id, mark }) => (mark === undefined ? [] : [{ id: _id, operation: mark }]));
    },

    async readViews(signal) {
      const row = await run(signal, () => savedViews.findOne({ _id: "views" }, { signal }));
      return { revision: row?.revision ?? 0, views: row?.views ?? [] };
    },

    async replaceViews({ revision, views }, signal) {
      const changed = { revision: revision + 1, views };
      if (revision === 0)
        return await unlessDuplicate(run(signal, () => savedViews.insertOne({ _id: "views", ...changed })));
      const { matchedCount } = await run(signal, () =>
        savedViews.updateOne({ _id: "views", revision }, { $set: changed }),
      );
      return matchedCount === 1;
    },

    ping,
    close,
  };
}

/** A regular expression for exactly `text`, NUL included, which a pattern cannot contain. */
function literally(text: string): string {
  return text.replace(
    /[^A-Za-z0-9\u0080-\uffff]/g,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

function rowOf(
  device: DeviceDocument & { created_at: number },
  operation: PendingOperation | null,
  position: number,
): DeviceRow {
  return {
    _id: device.id,
    position,
    revision: 1,
    created_at: device.created_at,
    last_seen: null,
    online: false,
    ...documentMembers(device),
    ...(operation === null ? { hidden: false } : operationMembers(operation)),
  };
}

function documentMembers(device: DeviceDocument) {
  const { name, acl, shadow, delta_metadata } = device;
  return {
    name,
    delta_metadata,
    labels: [...new Set(labelsOf(device.shadow.tags))],
    firmware: firmwareVersion(device.shadow.reported),
    acl: JSON.stringify(acl),
    shadow: JSON.stringify(shadow),
  };
}

function operationMembers(operation: PendingOperation) {
  return { hidden: operation.kind !== "rotating", mark: operation };
}

/** Trusts the JSON: only this adapter writes the collection. */
function storedDevice(row: DeviceRow): StoredDevice {
  return {
    id: row._id,
    name: row.name,
    acl: JSON.parse(row.acl),
    shadow: JSON.parse(row.shadow),
    delta_metadata: row.delta_metadata ?? true,
    created_at: row.created_at,
    last_seen: row.last_seen,
    revision: row.revision,
    position: String(row.position),
  };
}
