import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { LatestRecords } from "./latest-records.ts";
import type { RecordFollowing } from "./record-following.ts";
import type { RecordScan } from "./record-scan.ts";
import type { SeriesReading } from "./series-reading.ts";

/** What a reading thread does. */
export type ReaderOperations = RecordScan & LatestRecords & RecordFollowing & SeriesReading;

/** A request to a reading thread. */
export interface ReaderRequest<O extends keyof ReaderOperations = keyof ReaderOperations> {
  readonly operation: O;
  readonly input: Parameters<ReaderOperations[O]>;
}

/** The reply of a reading thread; the message of a failure is for the log. */
export type ReaderReply = { readonly result: unknown } | { readonly failure: string };

/** Threads that read a SQLite store beside its writer. */
export interface RecordReader {
  /**
   * Reads on an idle thread. The caller bounds how many operations, and so threads, there are at a time.
   * @throws StoreUnavailable when the thread died or the reader is closed
   */
  run<O extends keyof ReaderOperations>(
    operation: O,
    ...input: Parameters<ReaderOperations[O]>
  ): Promise<ReturnType<ReaderOperations[O]>>;
  /** For tests. */
  readonly threads: readonly Worker[];
  close(): Promise<void>;
}

/** Beside this module, and like it TypeScript or part of a bundle. */
const workerUrl = new URL(`./record-reader.worker${extname(import.meta.url)}`, import.meta.url);

/**
 * Starts one thread, and another for a read that finds none idle: a thread takes some megabytes. One that dies fails
 * its read.
 */
export function openRecordReader(path: string): RecordReader {
  const busy = new Map<Worker, PromiseWithResolvers<unknown>>();
  let idle = [start()];
  let closed = false;

  function start(): Worker {
    const worker = new Worker(workerUrl, { workerData: path });
    let cause: unknown;
    worker.unref();
    worker.on("message", (message: ReaderReply | object) => {
      // Under `node --watch` Node itself sends messages about the modules that a thread loads.
      if (!("result" in message || "failure" in message)) return;
      const read = busy.get(worker);
      busy.delete(worker);
      idle.push(worker);
      if ("result" in message) read?.resolve(message.result);
      else read?.reject(new StoreUnavailable(`the store cannot be read: ${message.failure}`));
    });
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => {
      idle = idle.filter((one) => one !== worker);
      busy.get(worker)?.reject(new StoreUnavailable("a reading thread died", { cause }));
      busy.delete(worker);
    });
    return worker;
  }

  return {
    get threads() {
      return [...idle, ...busy.keys()];
    },
    async run<O extends keyof ReaderOperations>(operation: O, ...input: Parameters<ReaderOperations[O]>) {
      if (closed) throw new StoreUnavailable("the store is closed");
      const worker = idle.shift() ?? start();
      const read = Promise.withResolvers<unknown>();
      busy.set(worker, read);
      worker.postMessage({ operation, input } satisfies ReaderRequest<O>);
      // A thread answers with what its operation returned.
      return (await read.promise) as ReturnType<ReaderOperations[O]>;
    },
    async close() {
      closed = true;
      await Promise.all([...idle, ...busy.keys()].map((worker) => worker.terminate()));
    },
  };
}
