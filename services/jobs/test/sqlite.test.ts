import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import { executionQueries } from "../src/store/execution-store.sqlite.ts";
import { firmwareQueries } from "../src/store/firmware-store.sqlite.ts";
import { openSqliteJobsStore } from "../src/store/jobs-store.sqlite.ts";
import { describeExecutionStore } from "./execution-store.suite.ts";
import { describeFirmwareStore } from "./firmware-store.suite.ts";
import type { StoreUnderTest } from "./store-under-test.ts";

async function newStore(): Promise<StoreUnderTest> {
  const folder = await tempFolder();
  const path = join(folder.path, `${randomUUID()}.db`);
  return { open: async () => openSqliteJobsStore(path), remove: () => folder.remove() };
}

describeExecutionStore("SQLite", newStore);
describeFirmwareStore("SQLite", newStore);

test("every query finds its rows by an index, in the order of the index", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "jobs.db");
  await openSqliteJobsStore(path).close();
  const db = new DatabaseSync(path);
  const planOf = (sql: string) =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => String(detail))
      .join("; ");
  const { insert: _, ...ofExecutions } = executionQueries;
  // The other statements about firmware write, or read a table of at most 10,000 rows.
  const { list: listFirmware, listUploads, readPiece, removePieces } = firmwareQueries;
  const queries = { ...ofExecutions, listFirmware, listUploads, readPiece, removePieces };
  const plans = Object.fromEntries(Object.entries(queries).map(([name, sql]) => [name, planOf(sql)]));
  db.close();
  expect(plans).toEqual({
    find: expect.stringContaining("(id=?)"),
    change: expect.stringContaining("(id=?)"),
    list: expect.stringContaining("execution_of_device (device_id=? AND id<?)"),
    listState: expect.stringContaining("execution_of_device (device_id=? AND id<?)"),
    findDue: expect.stringContaining("execution_waiting (device_id=?)"),
    listWaiting: expect.stringContaining("execution_waiting (device_id>?)"),
    queuedOf: expect.stringContaining("execution_waiting (device_id=?)"),
    sentOf: expect.stringContaining("(lane=?)"),
    overdue: expect.stringContaining("execution_due (due_at<?)"),
    expired: expect.stringContaining("execution_expiring (expires_at<?)"),
    unlist: expect.stringContaining("execution_of_device (device_id=?)"),
    countQueued: expect.stringMatching(/execution_(waiting|expiring)/),
    countSent: expect.stringContaining("execution_due"),
    removeEnded: expect.stringContaining("execution_ended (ended_at>? AND ended_at<?)"),
    listFirmware: expect.stringContaining("(id<?)"),
    listUploads: expect.stringContaining("(id>?)"),
    readPiece: expect.stringContaining("(upload=? AND number=?)"),
    removePieces: expect.stringContaining("(upload=?"),
  });
  for (const plan of Object.values(plans)) expect(plan).not.toContain("TEMP B-TREE");
});
