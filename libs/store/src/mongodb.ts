import { setTimeout as sleep } from "node:timers/promises";
import {
  type Db,
  type IndexDescription,
  MongoBulkWriteError,
  MongoClient,
  MongoClientClosedError,
  MongoError,
  MongoErrorLabel,
  MongoExpiredSessionError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerClosedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  MongoWriteConcernError,
} from "mongodb";
import { watchHeartbeats } from "./heartbeat-watch.ts";
import { StoreUnavailable } from "./store-unavailable.ts";
import type { MongoUrl } from "./store-url.ts";

/** A collection with the indexes that its queries need. */
export interface CollectionDeclaration {
  readonly name: string;
  /** Each has a `name`, by which a query's plan shows it. One that changes gets another name. */
  readonly indexes: readonly (IndexDescription & { readonly name: string })[];
}

/** A database shared by the replicas of a service. */
export interface MongoStore {
  readonly db: Db;
  /**
   * Runs a call of the driver until `signal` aborts; pass the signal on where the driver takes one.
   * @throws the signal's reason; {@link StoreUnavailable} when the server cannot serve now; else the driver's error.
   */
  run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** Resolves when the database answers now. @throws StoreUnavailable */
  ping(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/**
 * How long a call waits for a primary, in milliseconds, before it ends as {@link StoreUnavailable}: shorter than the
 * deadlines of callers.
 */
const serverSelectionMs = 1_500;

/** How long opening waits for a server, in milliseconds: both may be starting, on a busy machine. */
const openingMs = 10_000;

/** Between two attempts to connect, in milliseconds. */
const reconnectEveryMs = 500;

/** Server errors that do not depend on the request, by MongoDB's names (`error_codes.yml`). */
const awayCodes: ReadonlySet<number> = new Set(
  Object.values({
    // Not the primary now, or about to end.
    ShutdownInProgress: 91,
    NotYetInitialized: 94,
    FailedToSatisfyReadPreference: 133,
    ReadConcernMajorityNotAvailableYet: 134,
    PrimarySteppedDown: 189,
    ElectionInProgress: 216,
    LegacyNotPrimary: 10_058,
    NotWritablePrimary: 10_107,
    InterruptedAtShutdown: 11_600,
    InterruptedDueToReplStateChange: 11_602,
    NotPrimaryNoSecondaryOk: 13_435,
    NotPrimaryOrSecondary: 13_436,
    // Cannot reach the others, or not enough of them.
    HostUnreachable: 6,
    HostNotFound: 7,
    WriteConcernTimeout: 64,
    NetworkTimeout: 89,
    UnsatisfiableWriteConcern: 100,
    NetworkInterfaceExceededTimeLimit: 202,
    SocketException: 9_001,
    // Interrupted, or waits too long.
    LockTimeout: 24,
    CursorNotFound: 43,
    MaxTimeMSExpired: 50,
    WriteConflict: 112,
    ConflictingOperationInProgress: 117,
    QueryPlanKilled: 175,
    CursorKilled: 237,
    SnapshotTooOld: 239,
    SnapshotUnavailable: 246,
    ExceededTimeLimit: 262,
    ClientDisconnect: 279,
    InterruptedDueToStorageChange: 355,
    TemporarilyUnavailable: 365,
    Interrupted: 11_601,
    // Is full, or at its limits.
    TooManyLogicalSessions: 261,
    TooManyFilesOpen: 264,
    UserWritesBlocked: 371,
    ResourceExhausted: 402,
    PooledConnectionAcquisitionExceededTimeLimit: 407,
    AdmissionQueueOverflow: 433,
    RateLimitExceeded: 449,
    OutOfDiskSpace: 14_031,
    // Does not let this service in, since its password or its roles have just been changed.
    Unauthorized: 13,
    AuthenticationFailed: 18,
    ReauthenticationRequired: 391,
  }),
);

/**
 * Codes of a server on top of PostgreSQL for a call that it rolled back: `deadlock_detected` and
 * `serialization_failure`. MongoDB itself retries such a call.
 */
const rolledBackCodes: ReadonlySet<number> = new Set([16_908_292, 16_777_220]);
/** How often one call is tried in all when the server rolls it back. */
const attemptsAtMost = 5;

/**
 * Opens a service's database and creates its collections' indexes. Writes are journaled by a majority before they are
 * acknowledged, and reads are never rolled back (ADR 18).
 * @throws StoreUnavailable when no server answers within ten seconds.
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
  const connection = keepConnected(client);
  const store: MongoStore = {
    db,
    run: (givenSignal, work) => untilAborted(givenSignal, work),
    async ping(givenSignal) {
      await untilAborted(givenSignal, () => db.command({ ping: 1 }, { signal: givenSignal }));
    },
    close: () => connection.close(),
  };
  const endMs = performance.now() + openingMs;
  for (;;) {
    try {
      // By itself a client whose first call found no server connects no more.
      await store.run(signal, () => client.connect());
      await createIndexes(store, collections, signal);
      await store.ping(signal);
      return store;
    } catch (error) {
      if (!isUnreached(error) || performance.now() >= endMs) {
        await connection.close();
        throw error;
      }
    }
    await sleep(reconnectEveryMs, undefined, { signal }).catch(() => undefined);
  }
}

async function createIndexes(
  { db, run }: MongoStore,
  collections: readonly CollectionDeclaration[],
  signal: AbortSignal,
): Promise<void> {
  for (const { name, indexes } of collections) {
    if (indexes.length === 0) continue;
    const collection = db.collection(name);
    await run(signal, () => collection.createIndexes([...indexes]));
  }
}

/** Reconnects a client that no longer finds its servers; its collections stay valid. */
function keepConnected(client: MongoClient): { close(): Promise<void> } {
  const closing = new AbortController();
  let reconnecting: Promise<void> | null = null;
  async function reconnect() {
    await client.close();
    while (!closing.signal.aborted) {
      try {
        await client.connect();
        return;
      } catch {
        // Meanwhile calls end as unavailable, with the cause.
        await sleep(reconnectEveryMs, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  }
  const stopWatching = watchHeartbeats(client, () => {
    reconnecting ??= reconnect().finally(() => {
      reconnecting = null;
    });
  });
  return {
    async close() {
      stopWatching();
      closing.abort();
      await reconnecting;
      await client.close();
    },
  };
}

/** Whether a unique index, of that name or any, refused a write. Of a batch: whether that was the only failure. */
export function isDuplicateKey(error: unknown, index?: string): boolean {
  if (!(error instanceof MongoServerError) || error.code !== duplicateKey) return false;
  if (error instanceof MongoBulkWriteError) {
    const refused = [error.writeErrors].flat();
    return refused.every(({ code, errmsg }) => code === duplicateKey && isOf(index, errmsg ?? ""));
  }
  return isOf(index, error.message);
}

/** Whether a write succeeded; false when a unique index, of one of these names or any, refused it. */
export async function unlessDuplicate(write: Promise<unknown>, ...indexes: string[]): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    const refused =
      indexes.length === 0 ? isDuplicateKey(error) : indexes.some((index) => isDuplicateKey(error, index));
    if (refused) return false;
    throw error;
  }
}

const duplicateKey = 11_000;

/**
 * From `E11000 duplicate key error collection: <database>.<collection> index: <name> dup key: <key>`, as MongoDB says
 * it, or `Index '<name>'`.
 */
function isOf(index: string | undefined, message: string): boolean {
  return index === undefined || / (?:index: |Index ')(?<name>\w+)/.exec(message)?.groups?.name === index;
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
    return await Promise.race([unlessRolledBack(work, signal), aborted]);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw isAway(error) ? new StoreUnavailable(saying(error), { cause: error }) : error;
  } finally {
    stopListening();
  }
}

/** Tries again what the server undid as a whole, to let others go on. */
async function unlessRolledBack<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isWhole = error instanceof MongoServerError && !(error instanceof MongoBulkWriteError);
      if (!isWhole || !rolledBackCodes.has(Number(error.code))) throw error;
      if (attempt === attemptsAtMost || signal.aborted) throw error;
    }
  }
}

const awayErrors = [
  MongoNetworkError,
  MongoServerSelectionError,
  MongoServerClosedError,
  MongoTopologyClosedError,
  MongoClientClosedError,
  MongoNotConnectedError,
  MongoExpiredSessionError,
  MongoOperationTimeoutError,
  MongoWriteConcernError,
];

/** Whether no server answered; one that refuses the login does. */
function isUnreached(error: unknown): boolean {
  return error instanceof StoreUnavailable && !(error.cause instanceof MongoServerError);
}

function isAway(error: unknown): boolean {
  if (awayErrors.some((type) => error instanceof type)) return true;
  if (!(error instanceof MongoError)) return false;
  if (error.hasErrorLabel(MongoErrorLabel.RetryableWriteError)) return true;
  // Of a batch: what was written may be rolled back, whatever else was refused.
  if (error instanceof MongoBulkWriteError && error.result.getWriteConcernError() !== undefined) return true;
  if (!(error instanceof MongoServerError)) return false;
  const code = Number(error.code);
  return awayCodes.has(code) || rolledBackCodes.has(code);
}

function saying(error: unknown): string {
  if (!(error instanceof MongoServerError)) return "the database cannot be reached";
  return `the database cannot serve now (${error.codeName ?? error.code})`;
}
