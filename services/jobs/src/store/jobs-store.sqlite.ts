import { GroupCommit } from "@devmesh/store/group-commit";
import { createSqliteLeases } from "@devmesh/store/leases.sqlite";
import { openSqlite, unlessAborted } from "@devmesh/store/sqlite";
import { createSqliteExecutionStore, executionTables } from "./execution-store.sqlite.ts";
import { createSqliteFirmwareStore, firmwareDigests, firmwareTables } from "./firmware-store.sqlite.ts";
import { jobTable } from "./job-store.sqlite.ts";
import type { JobsStore } from "./jobs-store.ts";

const migrations = [executionTables + firmwareTables + jobTable, firmwareDigests];

/** Opens the file of the service. @throws Error with one clear sentence when another process holds it */
export function openSqliteJobsStore(path: string): JobsStore {
  const { db, close } = openSqlite(path, { migrations });
  const commits = new GroupCommit(db);
  const ping = db.prepare("SELECT 1");
  return {
    executions: createSqliteExecutionStore(db, commits),
    firmware: createSqliteFirmwareStore(db, commits),
    leases: createSqliteLeases(),
    ping: unlessAborted(() => void ping.get()),
    async close() {
      commits.flush();
      close();
    },
  };
}
