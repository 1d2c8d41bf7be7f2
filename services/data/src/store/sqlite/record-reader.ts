import { Worker } from "node:worker_threads";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { Position } from "../../ingestion/position.ts";
import type { RecordSelection } from "../data-store.ts";
import type { ScanBounds, ScanResult } from "./record-scan.ts";

/** What a reading thread is asked. */
export interface ReaderRequest {
  readonly selection: RecordSelection;
  readonly position: Position;
  readonly bounds: ScanBounds;
}

/** What it answers; the message of a failure is for the log. */
export type ReaderAnswer = { readonly result: ScanResult } | { readonly failure: string };

/** Threads that read a SQLite store beside its writer. */
export interface RecordReader {
  /** Scans on the next free thread. @throws StoreUnavailable when the thread died or the reader is closed. */
  scan(request: ReaderRequest): Promise<ScanResult>;
  /** Ids of the threads alive, for tests that end one. */
  readonly threads: readonly Worker[];
  close(): Promise<void>;
}

interface Waiting {
  readonly request: ReaderRequest;
  readonly resolve: (result: ScanResult) => void;
  readonly reject: (error: unknown) => void;
}

/** Null for what is no answer: under `node --watch` Node itself tells by the same way which modules a thread loads. */
function answerOf(message: ReaderAnswer | object): ReaderAnswer | null {
  return "result" in message || "failure" in message ? message : null;
}

/** Starts the threads. One that dies fails the scan it was at and is replaced. */
export function openRecordReader(path: string, threads: number): RecordReader {
  const waiting: Waiting[] = [];
  const idle: Worker[] = [];
  const busy = new Map<Worker, Waiting>();
  const alive = new Set<Worker>();
  let closed = false;
  for (let started = 0; started < threads; started++) start();

  function start(): void {
    const worker = new Worker(new URL("./record-reader.worker.ts", import.meta.url), { workerData: path });
    let cause: unknown;
    alive.add(worker);
    idle.push(worker);
    worker.unref();
    worker.on("message", (message: ReaderAnswer | object) => {
      const answer = answerOf(message);
      if (answer === null) return;
      const asked = busy.get(worker);
      busy.delete(worker);
      idle.push(worker);
      if ("result" in answer) asked?.resolve(answer.result);
      else asked?.reject(new StoreUnavailable(`the store cannot be read: ${answer.failure}`));
      assign();
    });
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => {
      alive.delete(worker);
      const at = idle.indexOf(worker);
      if (at !== -1) idle.splice(at, 1);
      busy.get(worker)?.reject(new StoreUnavailable("a reading thread died", { cause }));
      busy.delete(worker);
      if (closed) return;
      // Behind a timer: a thread that cannot even start must not keep the process busy with starting it.
      setTimeout(() => {
        if (closed) return;
        start();
        assign();
      }, 50).unref();
    });
  }

  function assign(): void {
    while (waiting.length > 0) {
      const worker = idle.shift();
      if (worker === undefined) return;
      const next = waiting.shift();
      if (next === undefined) return void idle.unshift(worker);
      busy.set(worker, next);
      worker.postMessage(next.request);
    }
  }

  return {
    get threads() {
      return [...alive];
    },
    scan(request) {
      return new Promise((resolve, reject) => {
        if (closed) return reject(new StoreUnavailable("the store is closed"));
        waiting.push({ request, resolve, reject });
        assign();
      });
    },
    async close() {
      closed = true;
      for (const asked of waiting.splice(0)) asked.reject(new StoreUnavailable("the store is closed"));
      await Promise.all([...alive].map((worker) => worker.terminate()));
    },
  };
}
