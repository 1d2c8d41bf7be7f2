import {
  type Db,
  type IndexDescription,
  MongoClient,
  MongoError,
  MongoErrorLabel,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  MongoWriteConcernError,
} from "mongodb";
import { StoreUnavailable } from "./store-unavailable.ts";
import type { MongoUrl } from "./store-url.ts";

/** A collection with the indexes that its queries need. */
export interface CollectionDeclaration {
  readonly name: string;
  /** Each has a `name`, by which a query's plan shows it. One that changes gets another name; the old one is dropped by hand. */
  readonly indexes: readonly (IndexDescription & { readonly name: string })[];
}

/** A database shared by the replicas of a service. */
export interface MongoStore {
  readonly db: Db;
  /**
   * Runs one call of the driver within the deadline of the call it is made for: hand the signal on to the driver where that takes
   * one, so that it cuts the work short; where it takes none, the work is left to end by itself.
   * @throws the signal's reason once it has aborted; {@link StoreUnavailable} when the server cannot be reached or cannot
   * serve now; else what the driver threw.
   */
  run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** Resolves when the database answers now. @throws StoreUnavailable */
  ping(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/**
 * How long a call looks for a server that takes writes, in milliseconds, before it ends as {@link StoreUnavailable}: callers are to
 * hear of a store that is away before their own deadline passes.
 */
const serverSelectionMs = 1_500;

/** What a server says of itself while it cannot serve: stepping down, shutting down, starting, not yet a primary. */
const awayCodes: ReadonlySet<number> = new Set([
  6, 7, 89, 91, 133, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436,
]);

/**
 * Opens a service's database and creates what is declared and missing. A write has reached the journals of a majority
 * of the servers when it is acknowledged, and what is read can no longer be rolled back (ADR 18).
 * @throws StoreUnavailable when no server answers in time.
 */
export async function openMongo(
  { url, database }: MongoUrl,
  collections: readonly CollectionDeclaration[],
  signal: AbortSignal,
): Promise<MongoStore> {
  const client = new MongoClient(url, {
    appName: "devmesh",
    writeConcern: { w: "majority", journal: true },
    readConcern: { level: "majority" },
    readPreference: "primary",
    serverSelectionTimeoutMS: serverSelectionMs,
    connectTimeoutMS: serverSelectionMs,
  });
  const db = client.db(database);
  const store: MongoStore = {
    db,
    run: (givenSignal, work) => untilAborted(givenSignal, work),
    async ping(givenSignal) {
      await untilAborted(givenSignal, () => db.command({ ping: 1 }, { signal: givenSignal }));
    },
    close: () => client.close(),
  };
  try {
    for (const { name, indexes } of collections) {
      if (indexes.length === 0) continue;
      await store.run(signal, () => db.collection(name).createIndexes([...indexes]));
    }
    await store.ping(signal);
    return store;
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** Whether a unique index refused a write: of that name, or, without one, any. */
export function isDuplicateKey(error: unknown, index?: string): boolean {
  if (!(error instanceof MongoServerError) || error.code !== 11_000) return false;
  return index === undefined || error.message.includes(index);
}

async function untilAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let stopListening = () => {};
  const aborted = new Promise<never>((_, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    stopListening = () => signal.removeEventListener("abort", onAbort);
  });
  try {
    // Of a race, the driver's later rejection is no unhandled one.
    return await Promise.race([work(), aborted]);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw isAway(error) ? new StoreUnavailable("the database cannot be reached", { cause: error }) : error;
  } finally {
    stopListening();
  }
}

function isAway(error: unknown): boolean {
  if (
    error instanceof MongoNetworkError ||
    error instanceof MongoServerSelectionError ||
    error instanceof MongoTopologyClosedError ||
    error instanceof MongoNotConnectedError ||
    error instanceof MongoOperationTimeoutError ||
    error instanceof MongoWriteConcernError
  ) {
    return true;
  }
  if (!(error instanceof MongoError)) return false;
  if (error.hasErrorLabel(MongoErrorLabel.RetryableWriteError)) return true;
  return error instanceof MongoServerError && typeof error.code === "number" && awayCodes.has(error.code);
}
