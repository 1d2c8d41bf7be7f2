import { definedMembers } from "@devmesh/service-kit/defined-members";
import { Semaphore } from "@devmesh/service-kit/semaphore";
import { type CollectionDeclaration, type MongoStore, unlessDuplicate } from "@devmesh/store/mongodb";
import {
  type AlertConditions,
  type AlertStore,
  type FiringCount,
  type Progress,
  pairOf,
  StaleChange,
  type StoredAlert,
} from "./alert-store.ts";

/** `document` is the JSON of the alert: names in a value could be taken for operators. */
interface AlertRow
  extends Pick<
    StoredAlert,
    | "revision"
    | "rule_id"
    | "rule_name"
    | "device_id"
    | "severity"
    | "state"
    | "cleared_at"
    | "held"
    | "notified_at"
  > {
  readonly _id: string;
  /** The rule and the device. */
  readonly pair: string;
  /** Unique: one alert fires and one pends. Absent once it has cleared. */
  readonly open?: string;
  /** And not held. */
  readonly unsent: boolean;
  readonly acknowledged: boolean;
  readonly document: string;
}

type ProgressRow = Omit<Progress, "blind"> & { readonly _id: "progress"; readonly blind: Progress["blind"] };

export const alertCollection = {
  name: "alerts",
  indexes: [
    { name: "open", key: { open: 1 }, unique: true, sparse: true },
    { name: "of_pair", key: { pair: 1, _id: -1 } },
    { name: "by_state", key: { state: 1, _id: -1 } },
    { name: "of_device", key: { device_id: 1, _id: -1 } },
    { name: "of_rule", key: { rule_id: 1, _id: -1 } },
    { name: "unsent", key: { unsent: 1, _id: 1 }, partialFilterExpression: { unsent: true } },
    { name: "held", key: { held: 1, _id: 1 }, partialFilterExpression: { held: true } },
    { name: "firing", key: { state: 1, rule_id: 1, notified_at: 1, severity: 1, acknowledged: 1 } },
    { name: "cleared", key: { cleared_at: 1 } },
  ],
} as const satisfies CollectionDeclaration;

/** Alerts in a MongoDB database, which all replicas share. */
export function createMongoAlertStore({ db, run }: MongoStore): AlertStore {
  const alerts = db.collection<AlertRow>(alertCollection.name);
  const state = db.collection<ProgressRow>("state");
  /** Held by a commit, whose documents are written one by one, and by a read that must see all of them or none. */
  const commits = new Semaphore({ permits: 1 });

  async function list(
    filter: object,
    direction: 1 | -1,
    limit: number,
    signal: AbortSignal,
  ): Promise<StoredAlert[]> {
    const rows = await run(signal, () =>
      alerts.find(filter, { signal }).sort({ _id: direction }).limit(limit).toArray(),
    );
    return rows.map(({ document }) => JSON.parse(document));
  }

  async function save(alert: StoredAlert, signal: AbortSignal): Promise<boolean> {
    const { _id, ...row } = rowOf({ ...alert, revision: alert.revision + 1 });
    if (alert.revision === 0) return unlessDuplicate(run(signal, () => alerts.insertOne({ _id, ...row })));
    const { matchedCount } = await run(signal, () =>
      alerts.replaceOne({ _id, revision: alert.revision }, row),
    );
    return matchedCount === 1;
  }

  return {
    async findNewest(pairs, signal) {
      const found = await Promise.all(pairs.map((pair) => list({ pair: pairOf(pair) }, -1, 2, signal)));
      return found.flat();
    },
    listOpen: ({ after, limit }, signal) =>
      list({ state: { $in: ["pending", "firing"] }, _id: { $gt: after } }, 1, limit, signal),
    findAlert: async (id, signal) => (await list({ _id: id }, 1, 1, signal)).at(0) ?? null,
    listAlerts: ({ after = "~", limit, ...selection }, signal) =>
      list({ _id: { $lt: after }, ...conditionsOf(selection) }, -1, limit, signal),
    countAlerts: (selection, signal) =>
      run(signal, () => alerts.countDocuments(conditionsOf(selection), { signal })),
    async countFiring(signal) {
      const pipeline = [
        { $match: { state: "firing" } },
        {
          $group: {
            _id: { rule_id: "$rule_id", severity: "$severity" },
            rule_name: { $last: "$rule_name" },
            firing: { $sum: 1 },
            unacknowledged: { $sum: { $cond: ["$acknowledged", 0, 1] } },
          },
        },
        { $replaceWith: { $mergeObjects: ["$_id", { $unsetField: { field: "_id", input: "$$ROOT" } }] } },
      ];
      return await run(signal, () => alerts.aggregate<FiringCount>(pipeline, { signal }).toArray());
    },
    async listUnsent({ limit, exceptRules = [] }, signal) {
      using _ = await commits.acquire();
      return await list({ unsent: true, rule_id: { $nin: exceptRules } }, 1, limit, signal);
    },
    listHeld: (limit, signal) => list({ held: true }, 1, limit, signal),
    listToRepeat: ({ rule_ids, sentBefore, limit }, signal) =>
      list(
        {
          state: "firing",
          rule_id: { $in: rule_ids },
          notified_at: { $lte: sentBefore, $ne: null },
          acknowledged: false,
          unsent: false,
          held: false,
        },
        1,
        limit,
        signal,
      ),
    async commit({ save: saved, remove, progress }, signal) {
      using _ = await commits.acquire();
      // Saved first: one that pends may be removed because an earlier one fires again.
      for (const alert of saved)
        if (!(await save(alert, signal))) throw new StaleChange("an alert has changed meanwhile");
      for (const { id, revision } of remove) {
        const done = await run(signal, () => alerts.deleteOne({ _id: id, revision }));
        if (done.deletedCount !== 1) throw new StaleChange("an alert has changed meanwhile");
      }
      if (progress === undefined) return;
      const { revision } = progress;
      const next = { ...progress, revision: revision + 1 };
      const isDone =
        revision === 0
          ? await unlessDuplicate(run(signal, () => state.insertOne({ _id: "progress", ...next })))
          : (await run(signal, () => state.replaceOne({ _id: "progress", revision }, next))).matchedCount ===
            1;
      if (!isDone) throw new StaleChange("another replica evaluates");
    },
    async readProgress(signal) {
      const row = await run(signal, () => state.findOne({ _id: "progress" }, { signal }));
      if (row === null) return null;
      const { _id, ...progress } = row;
      return progress;
    },
    async removeCleared(before, limit, signal) {
      const rows = await run(signal, () =>
        alerts
          .find(
            { cleared_at: { $lt: before, $ne: null }, unsent: false, held: false },
            { projection: { _id: 1 }, signal },
          )
          .limit(limit)
          .toArray(),
      );
      await run(signal, () => alerts.deleteMany({ _id: { $in: rows.map(({ _id }) => _id) } }));
      return rows.length;
    },
  };
}

function conditionsOf({ state = { $in: ["firing", "cleared"] }, ...selection }: MongoSelection) {
  return { state, ...definedMembers(selection) };
}

type MongoSelection = Omit<AlertConditions, "state"> & {
  readonly state?: AlertConditions["state"] | { readonly $in: StoredAlert["state"][] };
};

function rowOf(alert: StoredAlert): AlertRow {
  const {
    id: _id,
    revision,
    rule_id,
    rule_name,
    device_id,
    severity,
    state,
    cleared_at,
    notified_at,
  } = alert;
  const isUnsent = alert.unsent.length > 0;
  const pair = pairOf(alert);
  return {
    _id,
    revision,
    pair,
    ...(state !== "cleared" && { open: state === "pending" ? `${pair}/pending` : pair }),
    rule_id,
    rule_name,
    device_id,
    severity,
    state,
    cleared_at,
    notified_at,
    unsent: isUnsent && !alert.held,
    held: isUnsent && alert.held,
    acknowledged: alert.acknowledged_at !== null,
    document: JSON.stringify(alert),
  };
}
