import type { DatabaseSync } from "node:sqlite";
import type { GroupCommit } from "@devmesh/store/group-commit";
import { unlessAborted } from "@devmesh/store/sqlite";
import type { FirmwareStore, FirmwareUpload, StoredFirmware } from "./firmware-store.ts";

/** `document` is the JSON of the firmware but for its content and the MD5 of that. */
export const firmwareTables = `
CREATE TABLE firmware (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  content TEXT,
  document TEXT NOT NULL,
  UNIQUE (name, version)
) STRICT;
CREATE TABLE firmware_upload (
  id TEXT PRIMARY KEY,
  firmware_id TEXT NOT NULL,
  size INTEGER NOT NULL,
  begun_at INTEGER NOT NULL
) STRICT;
CREATE TABLE firmware_piece (
  upload TEXT NOT NULL,
  number INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (upload, number)
) STRICT;
`;

export const firmwareDigests = "ALTER TABLE firmware ADD COLUMN md5 TEXT;";

/** Statements by purpose; exported so that a test can ask the database for the plans. */
export const firmwareQueries = {
  insert: `INSERT INTO firmware (id, name, version, content, document)
    VALUES (:id, :name, :version, :content, :document) ON CONFLICT (name, version) DO NOTHING`,
  find: "SELECT content, md5, document FROM firmware WHERE id = ?",
  list: "SELECT content, md5, document FROM firmware WHERE id < ? ORDER BY id DESC LIMIT ?",
  count: "SELECT count(*) AS n FROM firmware",
  setContent: "UPDATE firmware SET content = :upload, md5 = :md5 WHERE id = :id AND content IS NULL",
  setMd5: "UPDATE firmware SET md5 = :md5 WHERE id = :id",
  remove: "DELETE FROM firmware WHERE id = ? RETURNING content, md5, document",
  insertUpload: `INSERT INTO firmware_upload (id, firmware_id, size, begun_at)
    VALUES (:id, :firmware_id, :size, :begun_at)`,
  findUpload: "SELECT id, firmware_id, size, begun_at FROM firmware_upload WHERE id = ?",
  listUploads: `SELECT id, firmware_id, size, begun_at FROM firmware_upload
    WHERE id > :after AND begun_at < :before ORDER BY id LIMIT :limit`,
  sumUploads: "SELECT coalesce(sum(size), 0) AS n FROM firmware_upload",
  putPiece: `INSERT INTO firmware_piece (upload, number, data) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET data = excluded.data`,
  readPiece: "SELECT data FROM firmware_piece WHERE upload = ? AND number = ?",
  emptyUpload: "UPDATE firmware_upload SET size = 0 WHERE id = ?",
  removePieces: `DELETE FROM firmware_piece WHERE upload = ?1 AND number IN
    (SELECT number FROM firmware_piece WHERE upload = ?1 LIMIT ?2)`,
  removeUpload: "DELETE FROM firmware_upload WHERE id = ?",
} as const;

/** Pieces that are removed in one commit: 8 MB. */
const removedPieces = 32;

/** Firmware in the SQLite file of the service. */
export function createSqliteFirmwareStore(db: DatabaseSync, commits: GroupCommit): FirmwareStore {
  const prepared = Object.entries(firmwareQueries).map(([purpose, sql]) => [purpose, db.prepare(sql)]);
  const queries = Object.fromEntries(prepared) as Record<
    keyof typeof firmwareQueries,
    ReturnType<typeof db.prepare>
  >;

  async function removePieces(upload: string, signal: AbortSignal): Promise<void> {
    const removeSome = () => Number(queries.removePieces.run(upload, removedPieces).changes);
    while ((await commits.run(removeSome, signal)) > 0);
  }

  return {
    insert: ({ content, md5: _, ...firmware }, most, signal) =>
      commits.run(() => {
        if (Number(queries.count.get()?.n) >= most) return "full";
        const { id, name, version } = firmware;
        const document = JSON.stringify(firmware);
        const { changes } = queries.insert.run({ id, name, version, content, document });
        return changes === 1 ? "stored" : "exists";
      }, signal),

    find: unlessAborted((id) => storedFirmware(queries.find.get(id))),

    list: unlessAborted(({ after = "~", limit }) =>
      queries.list.all(after, limit).flatMap((row) => storedFirmware(row) ?? []),
    ),

    setContent: (id, upload, md5, signal) =>
      commits.run(() => queries.setContent.run({ id, upload, md5 }).changes === 1, signal),

    setMd5: (id, md5, signal) => commits.run(() => void queries.setMd5.run({ id, md5 }), signal),

    remove: (id, signal) => commits.run(() => storedFirmware(queries.remove.get(id)), signal),

    insertUpload: (upload, maxBytes, signal) =>
      commits.run(() => {
        if (queries.findUpload.get(upload.id) !== undefined) return true;
        if (Number(queries.sumUploads.get()?.n) + upload.size > maxBytes) return false;
        queries.insertUpload.run({ ...upload });
        return true;
      }, signal),

    findUpload: unlessAborted((id) => (queries.findUpload.get(id) as FirmwareUpload | undefined) ?? null),

    listUploads: unlessAborted(
      (before, { after = "", limit }) =>
        queries.listUploads.all({ before, after, limit }) as unknown as FirmwareUpload[],
    ),

    sumUploads: unlessAborted(() => Number(queries.sumUploads.get()?.n)),

    putPiece: (upload, number, data, signal) =>
      commits.run(() => void queries.putPiece.run(upload, number, data), signal),

    readPiece: unlessAborted(
      (upload, number) => (queries.readPiece.get(upload, number)?.data as Uint8Array | undefined) ?? null,
    ),

    async emptyUpload(id, signal) {
      await commits.run(() => void queries.emptyUpload.run(id), signal);
      await removePieces(id, signal);
    },

    async removeUpload(id, signal) {
      await removePieces(id, signal);
      await commits.run(() => void queries.removeUpload.run(id), signal);
    },

    // What is limited is counted in the commit that inserts.
    correctCounts: async () => undefined,
  };
}

/** Trusts the JSON: only this adapter writes the table. */
function storedFirmware(row: Record<string, unknown> | undefined): StoredFirmware | null {
  const { document, content, md5 } = row ?? {};
  return document === undefined ? null : { ...JSON.parse(String(document)), content, md5 };
}
