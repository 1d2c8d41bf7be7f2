import { createMongoLimit } from "@devmesh/store/limit.mongodb";
import { type CollectionDeclaration, type MongoStore, unlessDuplicate } from "@devmesh/store/mongodb";
import type { FirmwareStore, FirmwareUpload, StoredFirmware } from "./firmware-store.ts";

/** `document` is the firmware without its content and MD5, as JSON: members of a condition could be operators. */
interface FirmwareRow {
  readonly _id: string;
  readonly name: string;
  readonly version: string;
  readonly content: string | null;
  /** Absent without a content, and of one that was stored before MD5s were. */
  readonly md5?: string;
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

  async function sumUploads(signal: AbortSignal): Promise<number> {
    const total = { $group: { _id: null, bytes: { $sum: "$size" } } };
    const [sum] = await run(signal, () =>
      uploads.aggregate<{ readonly bytes: number }>([total], { signal }).toArray(),
    );
    return Number(sum?.bytes ?? 0);
  }

  const countStored = (signal: AbortSignal) => run(signal, () => firmware.countDocuments({}, { signal }));
  const limits = {
    files: createMongoLimit({ db, run }, { name: "firmware", countStored }),
    bytes: createMongoLimit({ db, run }, { name: "firmware bytes", countStored: sumUploads }),
  };

  const removePieces = (upload: string, signal: AbortSignal) =>
    run(signal, () => pieces.deleteMany(firmwareFilters.piecesOf(upload)));

  return {
    async insert({ content, md5: _, ...given }, most, signal) {
      const { id: _id, name, version } = given;
      const row = { _id, name, version, content, document: JSON.stringify(given) };
      let isFull = true;
      const insert = () => {
        isFull = false;
        return unlessDuplicate(
          run(signal, () => firmware.insertOne(row)),
          "of_version",
        );
      };
      if (await limits.files.insert(most, insert, signal)) return "stored";
      return isFull ? "full" : "exists";
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

    async setContent(id, upload, md5, signal) {
      const { matchedCount } = await run(signal, () =>
        firmware.updateOne({ _id: id, content: null }, { $set: { content: upload, md5 } }),
      );
      return matchedCount === 1;
    },

    async setMd5(id, md5, signal) {
      await run(signal, () => firmware.updateOne({ _id: id }, { $set: { md5 } }));
    },

    async remove(id, signal) {
      let removed: FirmwareRow | null = null;
      const remove = async () => {
        removed = await run(signal, () => firmware.findOneAndDelete({ _id: id }));
        return removed === null ? 0 : 1;
      };
      await limits.files.remove(remove, signal);
      return storedFirmware(removed);
    },

    async insertUpload({ id: _id, ...upload }, maxBytes, signal) {
      if ((await run(signal, () => uploads.findOne({ _id }, { signal }))) !== null) return true;
      let isKnown = false;
      const insert = async () => {
        const isNew = await unlessDuplicate(run(signal, () => uploads.insertOne({ _id, ...upload })));
        isKnown = !isNew;
        return isNew;
      };
      return (await limits.bytes.insert(maxBytes, insert, signal, upload.size)) || isKnown;
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

    sumUploads,

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
      const empty = () =>
        run(signal, () =>
          uploads.findOneAndUpdate({ _id: id }, { $set: { size: 0 } }, { returnDocument: "before" }),
        );
      await limits.bytes.remove(async () => (await empty())?.size ?? 0, signal);
      await removePieces(id, signal);
    },

    async removeUpload(id, signal) {
      await removePieces(id, signal);
      const remove = () => run(signal, () => uploads.findOneAndDelete({ _id: id }));
      await limits.bytes.remove(async () => (await remove())?.size ?? 0, signal);
    },

    async correctCounts(signal) {
      await Promise.all(Object.values(limits).map((limit) => limit.correct(signal)));
    },
  };
}

/** Trusts the JSON: only this adapter writes the collection. */
function storedFirmware(row: FirmwareRow | null): StoredFirmware | null {
  return row && { ...JSON.parse(row.document), content: row.content, md5: row.md5 ?? null };
}

function storedUpload({ _id: id, firmware_id, size, begun_at }: UploadRow): FirmwareUpload {
  return { id, firmware_id, size, begun_at };
}
