import { parentPort, workerData } from "node:worker_threads";
import { openSqliteReader } from "@devmesh/store/sqlite";
import type { ReaderReply, ReaderRequest } from "./record-reader.ts";
import { createRecordScan } from "./record-scan.ts";

// A separate thread and connection, so that no query blocks ingestion.
const port = parentPort;
if (port === null) throw new Error("must run in a worker thread");
const db = openSqliteReader(String(workerData));
// 16 MB: caches the lists of common trigrams while a filter goes from segment to segment.
db.exec("PRAGMA cache_size = -16384");
const records = createRecordScan(db);

port.on("message", ({ selection, position, bounds }: ReaderRequest) => {
  let reply: ReaderReply;
  try {
    reply = { result: records.scan(selection, position, bounds) };
  } catch (error) {
    reply = { failure: error instanceof Error ? error.message : String(error) };
  }
  port.postMessage(reply);
});
