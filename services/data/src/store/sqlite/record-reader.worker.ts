import { parentPort, workerData } from "node:worker_threads";
import { openSqliteReader } from "@devmesh/store/sqlite";
import type { ReaderAnswer, ReaderRequest } from "./record-reader.ts";
import { createRecordScan } from "./record-scan.ts";

// Reads on a thread and a connection of its own, so that no query holds up ingestion.
const port = parentPort;
if (port === null) throw new Error("this is the body of a worker thread");
const db = openSqliteReader(String(workerData));
// 16 MB: the lists of common trigrams stay at hand while a filter goes from segment to segment.
db.exec("PRAGMA cache_size = -16384");
const records = createRecordScan(db);

port.on("message", ({ selection, position, bounds }: ReaderRequest) => {
  let answer: ReaderAnswer;
  try {
    answer = { result: records.scan(selection, position, bounds) };
  } catch (error) {
    answer = { failure: error instanceof Error ? error.message : String(error) };
  }
  port.postMessage(answer);
});
