import { GroupCommit } from "@devmesh/store/group-commit";
import { createSqliteLeases } from "@devmesh/store/leases.sqlite";
import { createSqliteMailSlotStore, mailSlotTables } from "@devmesh/store/mail-slots.sqlite";
import { openSqlite, unlessAborted } from "@devmesh/store/sqlite";
import { alertTables, createSqliteAlertStore } from "./alert-store.sqlite.ts";
import type { AlertsStore } from "./alerts-store.ts";
import { createSqliteRuleStore, ruleTables } from "./rule-store.sqlite.ts";

/** Opens the file of the service. @throws Error with one clear sentence when another process holds it */
export function openSqliteAlertsStore(path: string): AlertsStore {
  const { db, close } = openSqlite(path, { migrations: [ruleTables + alertTables + mailSlotTables] });
  const commits = new GroupCommit(db);
  const ping = db.prepare("SELECT 1");
  return {
    rules: createSqliteRuleStore(db, commits),
    alerts: createSqliteAlertStore(db, commits),
    testSlots: createSqliteMailSlotStore(db),
    leases: createSqliteLeases(),
    ping: unlessAborted(() => void ping.get()),
    async close() {
      commits.flush();
      close();
    },
  };
}
