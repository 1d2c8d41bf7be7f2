import type { DatabaseSync } from "node:sqlite";
import { definedMembers } from "@devmesh/service-kit/defined-members";
import type { GroupCommit } from "@devmesh/store/group-commit";
import { unlessAborted } from "@devmesh/store/sqlite";
import {
  type AlertConditions,
  type AlertStore,
  type FiringCount,
  type Progress,
  pairOf,
  StaleChange,
  type StoredAlert,
} from "./alert-store.ts";

/** `document` is the JSON of the row; the other columns repeat what is looked for. */
export const alertTables = `
  CREATE TABLE alert (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    -- The rule and the device.
    pair TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    device_id TEXT NOT NULL,
    severity TEXT NOT NULL,
    state TEXT NOT NULL,
    cleared_at INTEGER,
    -- 2 for what is held.
    unsent INTEGER NOT NULL,
    document TEXT NOT NULL,
    acknowledged INTEGER NOT NULL,
    notified_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX alert_open ON alert (pair) WHERE state <> 'cleared';
  CREATE INDEX alert_of_pair ON alert (pair, id);
  CREATE INDEX alert_by_state ON alert (state, id);
  CREATE INDEX alert_of_device ON alert (device_id, id);
  CREATE INDEX alert_of_rule ON alert (rule_id, id);
  CREATE INDEX alert_firing ON alert (rule_id, notified_at, severity, acknowledged) WHERE state = 'firing';
  CREATE INDEX alert_unsent ON alert (id) WHERE unsent = 1;
  CREATE INDEX alert_held ON alert (id) WHERE unsent = 2;
  CREATE INDEX alert_cleared ON alert (cleared_at) WHERE cleared_at IS NOT NULL;
  CREATE TABLE progress (only INTEGER PRIMARY KEY CHECK (only = 1), document TEXT NOT NULL) STRICT;
`;

/** Alerts in the SQLite file of the service. */
export function createSqliteAlertStore(db: DatabaseSync, commits: GroupCommit): AlertStore {
  const newest = db.prepare("SELECT document FROM alert WHERE pair = ? ORDER BY id DESC LIMIT 2");
  const open = db.prepare(
    "SELECT document FROM alert WHERE state <> 'cleared' AND id > ? ORDER BY id LIMIT ?",
  );
  const find = db.prepare("SELECT document FROM alert WHERE id = ?");
  const unsent =
    db.prepare(`SELECT document FROM alert WHERE unsent = 1 AND rule_id NOT IN (SELECT value FROM json_each(?))
    ORDER BY id LIMIT ?`);
  const held = db.prepare("SELECT document FROM alert WHERE unsent = 2 LIMIT ?");
  const toRepeat = db.prepare(`SELECT document FROM alert WHERE state = 'firing' AND
    rule_id IN (SELECT value FROM json_each(?)) AND notified_at <= ? AND acknowledged = 0 AND unsent = 0 LIMIT ?`);
  const countFiring = db.prepare(`SELECT rule_id, severity, count(*) AS firing,
    sum(acknowledged = 0) AS unacknowledged, json_extract(max(document), '$.rule_name') AS rule_name
    FROM alert WHERE state = 'firing' GROUP BY rule_id, severity`);
  const insert = db.prepare(`INSERT OR IGNORE INTO alert VALUES (:id, :revision, :pair, :rule_id, :device_id,
    :severity, :state, :cleared_at, :unsent, :document, :acknowledged, :notified_at)`);
  const update =
    db.prepare(`UPDATE OR IGNORE alert SET revision = :revision, severity = :severity, state = :state,
    cleared_at = :cleared_at, unsent = :unsent, document = :document, acknowledged = :acknowledged,
    notified_at = :notified_at WHERE id = :id AND revision = :revision - 1`);
  const remove = db.prepare("DELETE FROM alert WHERE id = ? AND revision = ?");
  const readProgress = db.prepare("SELECT document FROM progress");
  const writeProgress = db.prepare("INSERT OR REPLACE INTO progress VALUES (1, ?)");
  const removeCleared = db.prepare(
    "DELETE FROM alert WHERE id IN (SELECT id FROM alert WHERE cleared_at < ? AND unsent = 0 LIMIT ?)",
  );

  /** What is after `WHERE`, with its parameters. */
  function conditionsOf(selection: AlertConditions): readonly [sql: string, parameters: string[]] {
    const wanted = Object.entries(definedMembers(selection));
    const sql = wanted.map(([name]) => ` AND ${name} = ?`).join("");
    return [`state <> 'pending'${sql}`, wanted.map(([, value]) => String(value))];
  }

  function storedProgress(): Progress | null {
    const row = readProgress.get();
    return row === undefined ? null : JSON.parse(String(row.document));
  }

  return {
    findNewest: unlessAborted((pairs) => pairs.flatMap((pair) => newest.all(pairOf(pair)).map(storedAlert))),
    listOpen: unlessAborted(({ after, limit }) => open.all(after, limit).map(storedAlert)),
    findAlert: unlessAborted((id) => find.all(id).map(storedAlert).at(0) ?? null),
    listAlerts: unlessAborted(({ after = "~", limit, ...selection }) => {
      const [where, parameters] = conditionsOf(selection);
      const sql = `SELECT document FROM alert WHERE id < ? AND ${where} ORDER BY id DESC LIMIT ?`;
      return db
        .prepare(sql)
        .all(after, ...parameters, limit)
        .map(storedAlert);
    }),
    countAlerts: unlessAborted((selection) => {
      const [where, parameters] = conditionsOf(selection);
      return Number(
        db.prepare(`SELECT count(*) AS count FROM alert WHERE ${where}`).get(...parameters)?.count,
      );
    }),
    countFiring: unlessAborted(() => countFiring.all() as unknown as FiringCount[]),
    listUnsent: unlessAborted(({ limit, exceptRules = [] }) =>
      unsent.all(JSON.stringify(exceptRules), limit).map(storedAlert),
    ),
    listHeld: unlessAborted((limit) => held.all(limit).map(storedAlert)),
    listToRepeat: unlessAborted(({ rule_ids, sentBefore, limit }) =>
      toRepeat.all(JSON.stringify(rule_ids), sentBefore, limit).map(storedAlert),
    ),
    commit: ({ save, remove: removed, progress }, signal) =>
      commits.run(() => {
        const done = [
          ...removed.map(({ id, revision }) => remove.run(id, revision)),
          ...save.map((alert) => {
            const { pair, rule_id, device_id, ...row } = rowOf({ ...alert, revision: alert.revision + 1 });
            if (alert.revision === 0) return insert.run({ ...row, pair, rule_id, device_id });
            return update.run(row);
          }),
        ];
        if (done.some(({ changes }) => changes !== 1))
          throw new StaleChange("an alert has changed meanwhile");
        if (progress === undefined) return;
        if ((storedProgress()?.revision ?? 0) !== progress.revision)
          throw new StaleChange("another replica evaluates");
        writeProgress.run(JSON.stringify({ ...progress, revision: progress.revision + 1 }));
      }, signal),
    readProgress: unlessAborted(storedProgress),
    removeCleared: (before, limit, signal) =>
      commits.run(() => Number(removeCleared.run(before, limit).changes), signal),
  };
}

function rowOf(alert: StoredAlert) {
  const { id, revision, rule_id, device_id, severity, state, cleared_at } = alert;
  return {
    id,
    revision,
    pair: pairOf(alert),
    rule_id,
    device_id: device_id ?? "",
    severity,
    state,
    cleared_at,
    unsent: alert.unsent.length === 0 ? 0 : alert.held ? 2 : 1,
    document: JSON.stringify(alert),
    acknowledged: alert.acknowledged_at === null ? 0 : 1,
    notified_at: alert.notified_at ?? null,
  };
}

/** Trusts the JSON: only this adapter writes the table. */
function storedAlert({ document }: Record<string, unknown>): StoredAlert {
  return JSON.parse(String(document));
}
