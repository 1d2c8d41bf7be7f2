/** SQLite: a file of this process alone. */
export interface SqliteUrl {
  readonly kind: "sqlite";
  /** Path of the database file, or `:memory:`. */
  readonly path: string;
}

/** MongoDB: shared by all replicas of a service. */
export interface MongoUrl {
  readonly kind: "mongodb";
  /** The whole connection string. It may hold a password: for the driver alone, never for a log. */
  readonly url: string;
  /** The service's own database, which no other service opens. */
  readonly database: string;
}

/** Where a service keeps what it owns, from `STORE_URL`. */
export type StoreUrl = SqliteUrl | MongoUrl;

/** What MongoDB takes as a database's name. */
const databaseName = /^[A-Za-z0-9_-]{1,63}$/;

/**
 * Parses `STORE_URL`: `sqlite:<path>`, or `mongodb://<hosts>/<database>` or `mongodb+srv://<host>/<database>` with
 * driver options.
 * @throws Error without the URL, which may hold a password.
 */
export function parseStoreUrl(url: string): StoreUrl {
  const path = /^sqlite:(?:\/\/)?(?<path>.+)$/.exec(url)?.groups?.path;
  if (path !== undefined) return { kind: "sqlite", path };
  const database = /^mongodb(?:\+srv)?:\/\/[^/?]+\/(?<database>[^/?]*)(?:\?.*)?$/.exec(url)?.groups?.database;
  if (database !== undefined && databaseName.test(database)) return { kind: "mongodb", url, database };
  if (/^mongodb(?:\+srv)?:/.test(url)) {
    throw new Error("STORE_URL must name the service's database: mongodb://<hosts>/<database>");
  }
  throw new Error("STORE_URL must be of the form sqlite:<path> or mongodb://<hosts>/<database>");
}

/** How the store of a service is opened. */
export interface StoreAdapters<S> {
  readonly sqlite: (path: string) => S;
  /** Imports the adapter: its driver is large, and most installations do not use it. */
  readonly mongodb: () => Promise<(url: MongoUrl, signal: AbortSignal) => Promise<S>>;
}

/** Opens the store that a URL names. Rejects with one clear sentence when it cannot be opened. */
export async function openStore<S>(
  url: StoreUrl,
  { sqlite, mongodb }: StoreAdapters<S>,
  signal: AbortSignal,
): Promise<S> {
  if (url.kind === "sqlite") return sqlite(url.path);
  const open = await mongodb();
  return await open(url, signal);
}
