import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import { executionQueries } from "../src/store/execution-store.sqlite.ts";
import { firmwareQueries } from "../src/store/firmware-store.sqlite.ts";
import { jobQueries } from "../src/store/job-store.sqlite.ts";
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
  const { insert: __, ...ofJobs } = jobQueries;
  const plansOf = (asked: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(asked).map(([name, sql]) => [name, planOf(sql)]));
  const [plans, jobPlans] = [plansOf(queries), plansOf(ofJobs)];
  db.close();
  expect(plans).toEqual({
    find: expect.stringContaining("(id=?)"),
    findByTicket: expect.stringContaining("execution_of_ticket (ticket=?)"),
    change: expect.stringContaining("(id=?)"),
    list: expect.stringContaining("execution_of_device (device_id=? AND id<?)"),
    listState: expect.stringContaining("execution_of_device (device_id=? AND id<?)"),
    queuedInOrder: expect.stringContaining("execution_waiting (device_id=?)"),
    listOfJob: expect.stringContaining("execution_of_job (job_id=? AND place>? AND place<?)"),
    listStateOfJob: expect.stringContaining(
      "execution_of_job_state (job_id=? AND state=? AND place>? AND place<?)",
    ),
    findOfJob: expect.stringContaining("execution_of_job_device (job_id=? AND device_id=?)"),
    placeBeyond: expect.stringContaining("execution_of_job (job_id=? AND place>?)"),
    lastPlace: expect.stringContaining("execution_of_job (job_id=? AND place>?)"),
    countStates: expect.stringContaining("COVERING INDEX execution_of_job_state (job_id=?)"),
    removeOfJob: expect.stringContaining("(job_id=?)"),
    callsOf: expect.stringContaining("execution_waiting (device_id=?)"),
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
  expect(jobPlans).toEqual({
    find: expect.stringContaining("(id=?)"),
    change: expect.stringContaining("(id=?)"),
    list: expect.stringContaining("(id<?)"),
    listState: expect.stringContaining("job_of_state (state=? AND id<?)"),
    listOpen: expect.stringContaining("job_open"),
    countOpen: expect.stringContaining("job_open"),
    listOld: expect.stringContaining("job_ended (ended_at<?)"),
    remove: expect.stringContaining("(id=?)"),
  });
  for (const plan of [...Object.values(plans), ...Object.values(jobPlans)])
    expect(plan).not.toContain("TEMP B-TREE");
});
