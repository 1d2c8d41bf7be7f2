/** Where a service keeps what it owns, from `STORE_URL`. */
export interface SqliteUrl {
  readonly kind: "sqlite";
  /** Path of the database file, or `:memory:`. */
  readonly path: string;
}

/**
 * Parses `STORE_URL`: `sqlite:<path>`.
 * @throws Error that names the schemes supported, never the URL itself, which may hold a password.
 */
export function parseStoreUrl(url: string): SqliteUrl {
  const match = /^sqlite:(?:\/\/)?(?<path>.+)$/.exec(url);
  if (match?.groups?.path) return { kind: "sqlite", path: match.groups.path };
  throw new Error("STORE_URL must be of the form sqlite:<path>");
}
