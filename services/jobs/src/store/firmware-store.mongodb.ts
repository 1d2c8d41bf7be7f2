import { type CollectionDeclaration, type MongoStore, unlessDuplicate } from "@devmesh/store/mongodb";
import type { FirmwareStore, FirmwareUpload, StoredFirmware } from "./firmware-store.ts";

/** `document` is the JSON of the firmware but for its content: a condition's members could be taken for operators. */
interface FirmwareRow {
  readonly _id: string;
  readonly name: string;
  readonly version: string;
  readonly content: string | null;
  readonly document: string;
}

interface UploadRow extends Omit<FirmwareUpload, "id"> {
  readonly _id: string;
}

interface PieceRow {
  /** `<upload>/<number>`. */
  readonly _id: string;
  readonly data: Uint8Array;
}

export const firmwareCollection = {
  name: "firmware",
  indexes: [{ name: "of_version", key: { name: 1, version: 1 }, unique: true }],
} as const satisfies CollectionDeclaration;

const firmwareFilters = {
  before: (id: string) => ({ _id: { $lt: id } }),
  uploadsAfter: (id: string, begunBefore: number) => ({ _id: { $gt: id }, begun_at: { $lt: begunBefore } }),
  // "0" follows "/".
  piecesOf: (upload: string) => ({ _id: { $gte: `${upload}/`, $lt: `${upload}0` } }),
} as const;

/** Firmware in a MongoDB database, which all replicas share. */
export function createMongoFirmwareStore({ db, run }: MongoStore): FirmwareStore {
  const firmware = db.collection<FirmwareRow>(firmwareCollection.name);
  const uploads = db.collection<UploadRow>("firmware_uploads");
  // Without the option bytes are read as `Binary`, which is no `Uint8Array`.
  const pieces = db.collection<PieceRow>("firmware_pieces", { promoteBuffers: true });

  const removePieces = (upload: string, signal: AbortSignal) =>
    run(signal, () => pieces.deleteMany(firmwareFilters.piecesOf(upload)));

  return {
    async insert({ content, ...given }, signal) {
      const { id: _id, name, version } = given;
      const row = { _id, name, version, content, document: JSON.stringify(given) };
      return await unlessDuplicate(
        run(signal, () => firmware.insertOne(row)),
        "of_version",
      );
    },

    async find(id, signal) {
      return storedFirmware(await run(signal, () => firmware.findOne({ _id: id }, { signal })));
    },

    async list({ after = "~", limit }, signal) {
      const rows = await run(signal, () =>
        firmware.find(firmwareFilters.before(after), { signal }).sort({ _id: -1 }).limit(limit).toArray(),
      );
      return rows.flatMap((row) => storedFirmware(row) ?? []);
    },

    count: (signal) => run(signal, () => firmware.countDocuments({}, { signal })),

    async setContent(id, upload, signal) {
      const { matchedCount } = await run(signal, () =>
        firmware.updateOne({ _id: id, content: null }, { $set: { content: upload } }),
      );
      return matchedCount === 1;
    },

    async remove(id, signal) {
      return storedFirmware(await run(signal, () => firmware.findOneAndDelete({ _id: id })));
    },

    async insertUpload({ id: _id, ...upload }, signal) {
      await unlessDuplicate(run(signal, () => uploads.insertOne({ _id, ...upload })));
    },

    async findUpload(id, signal) {
      const row = await run(signal, () => uploads.findOne({ _id: id }, { signal }));
      return row && storedUpload(row);
    },

    async listUploads(begunBefore, { after = "", limit }, signal) {
      const filter = firmwareFilters.uploadsAfter(after, begunBefore);
      const rows = await run(signal, () =>
        uploads.find(filter, { signal }).sort({ _id: 1 }).limit(limit).toArray(),
      );
      return rows.map(storedUpload);
    },

    async sumUploads(signal) {
      const total = { $group: { _id: null, bytes: { $sum: "$size" } } };
      const [sum] = await run(signal, () =>
        uploads.aggregate<{ readonly bytes: number }>([total], { signal }).toArray(),
      );
      return Number(sum?.bytes ?? 0);
    },

    async putPiece(upload, number, data, signal) {
      const _id = `${upload}/${number}`;
      // Where two calls store one piece, both have the same bytes.
      await unlessDuplicate(run(signal, () => pieces.replaceOne({ _id }, { data }, { upsert: true })));
    },

    async readPiece(upload, number, signal) {
      const row = await run(signal, () => pieces.findOne({ _id: `${upload}/${number}` }, { signal }));
      return row?.data ?? null;
    },

    async emptyUpload(id, signal) {
      await run(signal, () => uploads.updateOne({ _id: id }, { $set: { size: 0 } }));
      await removePieces(id, signal);
    },

    async removeUpload(id, signal) {
      await removePieces(id, signal);
      await run(signal, () => uploads.deleteOne({ _id: id }));
    },
  };
}

/** Trusts the JSON: only this adapter writes the collection. */
function storedFirmware(row: FirmwareRow | null): StoredFirmware | null {
  return row && { ...JSON.parse(row.document), content: row.content };
}

function storedUpload({ _id: id, firmware_id, size, begun_at }: UploadRow): FirmwareUpload {
  return { id, firmware_id, size, begun_at };
}
