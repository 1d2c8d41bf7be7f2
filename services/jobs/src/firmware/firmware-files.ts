import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import type { jobs } from "@devmesh/contracts/jobs";
import { checkFirmwareInput, type Firmware, firmwareBounds } from "@devmesh/contracts/model/firmware";
import type { JsonObject } from "@devmesh/contracts/model/json";
import { ViolationList } from "@devmesh/contracts/model/violation";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { pageById } from "@devmesh/service-kit/rpc/page";
import type { FirmwareStore, FirmwareUpload, StoredFirmware } from "../store/firmware-store.ts";
import type { IsSigned } from "./signature.ts";

/** Firmware of one page, unless the caller wants less. */
const pageSize = 500;

/** How old an upload is after which it is removed, in milliseconds. */
const brokenAfterMs = 60 * 60_000;

const { pieceBytes, files, uploadMs } = firmwareBounds;

export interface FirmwareFilesOptions {
  readonly store: FirmwareStore;
  /** Whether a job that has not ended sends it to devices. */
  readonly isInUse: (id: string, signal: AbortSignal) => Promise<boolean>;
  /** Bytes of a file, and of all uploads. */
  readonly maxFile: number;
  readonly maxBytes: number;
  readonly isSigned: IsSigned;
  readonly newId: () => string;
  readonly clock: Clock;
}

/** The methods of the contract about firmware. */
export type FirmwareMethod =
  | "createFirmware"
  | "listFirmware"
  | "readFirmware"
  | "deleteFirmware"
  | "putContent"
  | "endContent"
  | "readContent";

/** The use cases of firmware, and the removal of uploads that were cut. */
export interface FirmwareFiles {
  readonly implementation: Pick<Implementation<typeof jobs>, FirmwareMethod>;
  /** Removes uploads that are no content and began more than an hour ago. */
  removeBroken(signal: AbortSignal): Promise<void>;
  /** Stores the MD5 of contents that an earlier release stored without. */
  addMd5s(signal: AbortSignal): Promise<void>;
}

export function createFirmwareFiles(options: FirmwareFilesOptions): FirmwareFiles {
  const { store, isInUse, maxFile, maxBytes, isSigned, newId, clock } = options;
  const now = () => clock.now().getTime();

  /** The MD5 of an upload whose pieces are what was declared; else null. */
  async function md5OfWhole(
    upload: Pick<FirmwareUpload, "id" | "size">,
    { size, sha256 }: StoredFirmware,
    signal: AbortSignal,
  ): Promise<string | null> {
    if (upload.size !== size) return null;
    const hashes = [createHash("sha256"), createHash("md5")] as const;
    for (let number = 0; number * pieceBytes < size; number++) {
      const piece = await store.readPiece(upload.id, number, signal);
      if (piece === null) return null;
      for (const hash of hashes) hash.update(piece);
      // SQLite answers within the turn: other calls have one between two pieces.
      await turn();
    }
    const [found, md5] = hashes.map((hash) => hash.digest("hex"));
    return found === sha256 ? (md5 ?? null) : null;
  }

  return {
    implementation: {
      async createFirmware({ firmware: given, created_by }, ctx) {
        const { name, version, size, sha256, reported_as = version } = given;
        const { requires = null, signature = null, note = null } = given;
        const violations = new ViolationList();
        checkFirmwareInput({ ...given } as JsonObject, violations);
        if (violations.any) return ctx.fail("firmware_invalid", violations.list);
        if (size > maxFile) return ctx.fail("firmware_too_large");
        if (!isSigned({ sha256, signature })) return ctx.fail("signature_invalid");
        const firmware: StoredFirmware = {
          id: newId(),
          name,
          version,
          size,
          sha256,
          reported_as,
          requires,
          signature,
          note,
          created_at: now(),
          created_by,
          md5: null,
          content: null,
        };
        const outcome = await store.insert(firmware, files, ctx.signal);
        if (outcome === "full") return ctx.fail("firmware_store_full");
        return outcome === "stored" ? describeFirmware(firmware) : ctx.fail("firmware_exists");
      },

      listFirmware: (page, ctx) =>
        pageById(page, {
          most: pageSize,
          read: (asked) => store.list(asked, ctx.signal),
          describe: describeFirmware,
          refuse: () => ctx.fail("cursor_invalid"),
        }),

      async readFirmware({ id }, ctx) {
        return describeFirmware((await store.find(id, ctx.signal)) ?? ctx.fail("firmware_not_found"));
      },

      async deleteFirmware({ id }, ctx) {
        if (await isInUse(id, ctx.signal)) return ctx.fail("firmware_in_use");
        const { content } = (await store.remove(id, ctx.signal)) ?? ctx.fail("firmware_not_found");
        // Where this is cut, its pieces are removed as those of a broken upload.
        if (content !== null) await store.emptyUpload(content, ctx.signal);
        return {};
      },

      async putContent({ id, upload, number, data }, ctx) {
        const firmware = (await store.find(id, ctx.signal)) ?? ctx.fail("firmware_not_found");
        const { size, content } = firmware;
        if (content !== null) return ctx.fail("content_exists");
        const piece = Buffer.from(data, "base64");
        if (piece.length !== Math.min(pieceBytes, size - number * pieceBytes))
          return ctx.fail("content_mismatch");
        if (number === 0) {
          const begun = { id: upload, firmware_id: id, size, begun_at: now() };
          if (!(await store.insertUpload(begun, maxBytes, ctx.signal)))
            return ctx.fail("firmware_store_full");
        }
        const begun = await store.findUpload(upload, ctx.signal);
        if (begun?.firmware_id !== id || begun.size !== size) return ctx.fail("content_mismatch");
        await store.putPiece(upload, number, piece, ctx.signal);
        return {};
      },

      async endContent({ id, upload }, ctx) {
        const firmware = (await store.find(id, ctx.signal)) ?? ctx.fail("firmware_not_found");
        if (firmware.content === upload) return describeFirmware(firmware);
        const begun = await store.findUpload(upload, ctx.signal);
        if (begun?.firmware_id !== id) return ctx.fail("content_mismatch");
        const isFree = firmware.content === null;
        const isInTime = now() - begun.begun_at <= uploadMs;
        const md5 = isFree && isInTime ? await md5OfWhole(begun, firmware, ctx.signal) : null;
        if (md5 !== null) {
          if (await store.setContent(id, upload, md5, ctx.signal))
            return describeFirmware({ ...firmware, content: upload, md5 });
        } else if (isFree) {
          await store.emptyUpload(upload, ctx.signal);
          return ctx.fail("content_mismatch");
        }
        await store.emptyUpload(upload, ctx.signal);
        // Another upload was faster, or the firmware was deleted.
        return ctx.fail(
          (await store.find(id, ctx.signal)) === null ? "firmware_not_found" : "content_exists",
        );
      },

      async readContent({ id, number }, ctx) {
        const { content } = (await store.find(id, ctx.signal)) ?? ctx.fail("firmware_not_found");
        if (content === null) return ctx.fail("content_not_found");
        const piece = (await store.readPiece(content, number, ctx.signal)) ?? ctx.fail("content_not_found");
        return { data: Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString("base64") };
      },
    },

    async removeBroken(signal) {
      const before = now() - brokenAfterMs;
      for (let after = ""; ; ) {
        const page = await store.listUploads(before, { after, limit: pageSize }, signal);
        for (const { id, firmware_id } of page)
          if ((await store.find(firmware_id, signal))?.content !== id) await store.removeUpload(id, signal);
        const last = page.at(-1);
        if (last === undefined || page.length < pageSize) return;
        after = last.id;
      }
    },

    async addMd5s(signal) {
      for (let after: string | undefined; ; ) {
        const page = await store.list({ limit: pageSize, ...(after !== undefined && { after }) }, signal);
        for (const one of page) {
          const { id, content, md5, size } = one;
          if (content === null || md5 !== null) continue;
          const found = await md5OfWhole({ id: content, size }, one, signal);
          if (found !== null) await store.setMd5(id, found, signal);
        }
        const last = page.at(-1);
        if (last === undefined || page.length < pageSize) return;
        after = last.id;
      }
    },
  };
}

/** Firmware as the API shows it. */
function describeFirmware({ content, created_at, ...shown }: StoredFirmware): Firmware {
  return { ...shown, ready: content !== null, created_at: new Date(created_at).toISOString() };
}
