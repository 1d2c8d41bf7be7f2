import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { RecordSelection } from "../data-store.ts";
import type { Position } from "../position.ts";
import type { ScanBounds, ScanResult } from "./record-scan.ts";

/** A request to a reading thread. */
export interface ReaderRequest {
  readonly selection: RecordSelection;
  readonly position: Position;
  readonly bounds: ScanBounds;
}

/** The reply of a reading thread; the message of a failure is for the log. */
export type ReaderReply = { readonly result: ScanResult } | { readonly failure: string };

/** Threads that read a SQLite store beside its writer. */
export interface RecordReader {
  /**
   * Scans on an idle thread. The caller bounds how many scans, and so threads, there are at a time.
   * @throws StoreUnavailable when the thread died or the reader is closed
   */
  scan(request: ReaderRequest): Promise<ScanResult>;
  /** For tests. */
  readonly threads: readonly Worker[];
  close(): Promise<void>;
}

/** Beside this module, and like it TypeScript or part of a bundle. */
const workerUrl = new URL(`./record-reader.worker${extname(import.meta.url)}`, import.meta.url);

/**
 * Starts one thread, and another for a scan that finds none idle: a thread takes some megabytes. One that dies fails
 * its scan.
 */
export function openRecordReader(path: string): RecordReader {
  const busy = new Map<Worker, PromiseWithResolvers<ScanResult>>();
  let idle = [start()];
  let closed = false;

  function start(): Worker {
    const worker = new Worker(workerUrl, { workerData: path });
    let cause: unknown;
    worker.unref();
    worker.on("message", (message: ReaderReply | object) => {
      // Under `node --watch` Node itself sends messages about the modules that a thread loads.
      if (!("result" in message || "failure" in message)) return;
      const scan = busy.get(worker);
      busy.delete(worker);
      idle.push(worker);
      if ("result" in message) scan?.resolve(message.result);
      else scan?.reject(new StoreUnavailable(`the store cannot be read: ${message.failure}`));
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
    async scan(request) {
      if (closed) throw new StoreUnavailable("the store is closed");
      const worker = idle.shift() ?? start();
      const scan = Promise.withResolvers<ScanResult>();
      busy.set(worker, scan);
      worker.postMessage(request);
      return await scan.promise;
    },
    async close() {
      closed = true;
      await Promise.all([...idle, ...busy.keys()].map((worker) => worker.terminate()));
    },
  };
}
