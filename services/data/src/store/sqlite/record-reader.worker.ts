import { parentPort, workerData } from "node:worker_threads";
import { openSqliteReader } from "@devmesh/store/sqlite";
import { createLatestRecords } from "./latest-records.ts";
import { createRecordFollowing } from "./record-following.ts";
import type { ReaderOperations, ReaderReply, ReaderRequest } from "./record-reader.ts";
import { createRecordScan } from "./record-scan.ts";
import { createSeriesReading } from "./series-reading.ts";

// A separate thread and connection, so that no query blocks ingestion.
const port = parentPort;
if (port === null) throw new Error("must run in a worker thread");
const db = openSqliteReader(String(workerData));
// 16 MB: caches the lists of common trigrams while a filter goes from segment to segment.
db.exec("PRAGMA cache_size = -16384");
const operations: ReaderOperations = {
  ...createRecordScan(db),
  ...createLatestRecords(db),
  ...createRecordFollowing(db),
  ...createSeriesReading(db),
};

port.on("message", ({ operation, input }: ReaderRequest) => {
  let reply: ReaderReply;
  try {
    // The types of the request's members belong together, which the compiler cannot see here.
    reply = { result: (operations[operation] as (...given: unknown[]) => unknown)(...input) };
  } catch (error) {
    reply = { failure: error instanceof Error ? error.message : String(error) };
  }
  port.postMessage(reply);
});
