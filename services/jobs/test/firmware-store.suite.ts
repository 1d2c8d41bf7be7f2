import { createHash, randomUUID } from "node:crypto";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createFirmwareFiles } from "../src/firmware/firmware-files.ts";
import type { FirmwareUpload, StoredFirmware } from "../src/store/firmware-store.ts";
import type { JobsStore } from "../src/store/jobs-store.ts";
import type { StoreUnderTest } from "./store-under-test.ts";

const { signal } = new AbortController();

let made = 0;

/** More firmware and bytes than a test stores. */
const most = 1_000;
const maxBytes = 10_000_000_000;

/** Firmware without content, of a version that no other has. */
function newFirmware(more: Partial<StoredFirmware> = {}): StoredFirmware {
  const number = ++made;
  return {
    id: `01937a3c-5b1e-7000-8f00-${String(number).padStart(12, "0")}`,
    name: "pump",
    version: `1.${number}`,
    size: 3,
    sha256: "0".repeat(64),
    md5: null,
    reported_as: "1",
    requires: { labels: { all: ["$a.b"] } },
    signature: null,
    note: "Ü",
    created_at: 1_000,
    created_by: { kind: "master", key_id: "k" },
    content: null,
    ...more,
  };
}

const newUpload = (firmware_id: string, more: Partial<FirmwareUpload> = {}): FirmwareUpload => ({
  id: randomUUID(),
  firmware_id,
  size: 3,
  begun_at: 1_000,
  ...more,
});

/** What every adapter of the port must do. */
export function describeFirmwareStore(adapter: string, create: () => Promise<StoreUnderTest>): void {
  describe(`firmware in ${adapter}`, () => {
    let place: StoreUnderTest;
    let opened: JobsStore;
    beforeEach(async () => {
      place = await create();
      opened = await place.open();
    });
    afterEach(async () => {
      await opened.close();
      await place.remove();
    });

    const store = () => opened.firmware;
    const insert = async (more: Partial<StoredFirmware> = {}) => {
      const firmware = newFirmware(more);
      expect(await store().insert(firmware, most, signal)).toBe("stored");
      return firmware;
    };
    const filesOf = (clock: ManualClock) =>
      createFirmwareFiles({
        isInUse: async () => false,
        store: store(),
        maxFile: 100,
        maxBytes: 100,
        isSigned: () => true,
        newId: randomUUID,
        clock,
      });
    const pieceOf = async (upload: string, number: number) => {
      const piece = await store().readPiece(upload, number, signal);
      return piece && [...piece];
    };

    test("firmware and its pieces are found as they were stored, also after a reopening", async () => {
      const firmware = await insert();
      const upload = newUpload(firmware.id);
      await store().insertUpload(upload, maxBytes, signal);
      await store().putPiece(upload.id, 0, Uint8Array.of(0, 255, 7), signal);
      await opened.close();
      opened = await place.open();
      expect(await store().find(firmware.id, signal)).toEqual(firmware);
      expect(await store().find("none", signal)).toBeNull();
      expect(await store().findUpload(upload.id, signal)).toEqual(upload);
      expect(await store().findUpload("none", signal)).toBeNull();
      expect(await pieceOf(upload.id, 0)).toEqual([0, 255, 7]);
      expect(await pieceOf(upload.id, 1)).toBeNull();
    });

    test("one of several with a name and version is stored", async () => {
      const [one, other] = [newFirmware({ version: "v" }), newFirmware({ version: "v" })];
      const both = await Promise.all([one, other].map((firmware) => store().insert(firmware, 2, signal)));
      expect(both.toSorted()).toEqual(["exists", "stored"]);
      expect(await store().insert(newFirmware({ version: "v", name: "fan" }), 2, signal)).toBe("stored");
      expect(await store().list({ limit: 9 }, signal)).toHaveLength(2);
    });

    test("of what many store at the same time, as much is stored as there may be", async () => {
      const insertMany = () =>
        Promise.all(Array.from({ length: 20 }, () => store().insert(newFirmware(), 3, signal)));
      expect((await insertMany()).toSorted()).toEqual([
        ...Array(17).fill("full"),
        ...Array(3).fill("stored"),
      ]);
      for (const { id } of await store().list({ limit: 2 }, signal)) await store().remove(id, signal);
      expect((await insertMany()).filter((one) => one === "stored")).toHaveLength(2);
      const uploads = Array.from({ length: 20 }, () => newUpload("f", { size: 30 }));
      const begin = (upload: FirmwareUpload) => store().insertUpload(upload, 100, signal);
      const begun = await Promise.all(uploads.map(begin));
      expect([begun.filter(Boolean).length, await store().sumUploads(signal)]).toEqual([3, 90]);
      const [first, second] = uploads.filter((_, at) => begun[at]) as [FirmwareUpload, FirmwareUpload];
      await store().emptyUpload(first.id, signal);
      await store().emptyUpload(first.id, signal);
      await store().removeUpload(first.id, signal);
      await store().removeUpload(second.id, signal);
      const again = await Promise.all(
        uploads.slice(0, 9).map((upload) => begin({ ...upload, id: randomUUID() })),
      );
      expect([again.filter(Boolean).length, await store().sumUploads(signal)]).toEqual([2, 90]);
      await store().correctCounts(signal);
    });

    test("lists are newest first, in pages", async () => {
      const [first, second, third] = [await insert(), await insert(), await insert()];
      expect(await store().list({ limit: 2 }, signal)).toEqual([third, second]);
      expect(await store().list({ limit: 2, after: second.id }, signal)).toEqual([first]);
    });

    test("one of eight uploads becomes the content, for good", async () => {
      const { id } = await insert();
      const uploads = Array.from({ length: 8 }, () => randomUUID());
      const won = await Promise.all(uploads.map((upload) => store().setContent(id, upload, "5d", signal)));
      expect(won.filter(Boolean)).toHaveLength(1);
      const content = uploads[won.indexOf(true)];
      expect(await store().find(id, signal)).toMatchObject({ content, md5: "5d" });
      expect(await store().setContent("none", "u", "5d", signal)).toBe(false);
      expect(await store().remove(id, signal)).toMatchObject({ id, content });
      expect(await store().remove(id, signal)).toBeNull();
      expect(await store().setContent(id, "u", "5d", signal)).toBe(false);
    });

    test("a piece that is stored twice is there once, and uploads are apart", async () => {
      const [one, other] = [randomUUID(), randomUUID()];
      await Promise.all([1, 2].map(() => store().putPiece(one, 0, Uint8Array.of(1), signal)));
      await store().putPiece(one, 0, Uint8Array.of(2), signal);
      await store().putPiece(one, 10, Uint8Array.of(3), signal);
      await store().putPiece(other, 0, Uint8Array.of(4), signal);
      await store().emptyUpload(one, signal);
      expect([await pieceOf(one, 0), await pieceOf(one, 10), await pieceOf(other, 0)]).toEqual([
        null,
        null,
        [4],
      ]);
    });

    test("the bytes of uploads are summed until they are emptied", async () => {
      const upload = newUpload("f", { size: 5_000_000_000 });
      expect(await store().sumUploads(signal)).toBe(0);
      await store().insertUpload(upload, maxBytes, signal);
      await store().insertUpload({ ...upload, size: 1 }, maxBytes, signal);
      await store().insertUpload(newUpload("f", { size: 7 }), maxBytes, signal);
      expect(await store().sumUploads(signal)).toBe(5_000_000_007);
      await store().emptyUpload(upload.id, signal);
      expect(await store().findUpload(upload.id, signal)).toEqual({ ...upload, size: 0 });
      expect(await store().sumUploads(signal)).toBe(7);
    });

    test("contents that were stored without an MD5 get it, once they are read", async () => {
      const files = filesOf(new ManualClock());
      const bytes = Buffer.from("abc");
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      const [first, second] = [newUpload("older"), newUpload("damaged")];
      for (const upload of [first, second]) {
        await store().insertUpload(upload, maxBytes, signal);
        await store().putPiece(upload.id, 0, bytes, signal);
      }
      const older = await insert({ sha256, content: first.id });
      const [empty, damaged] = [await insert({ sha256 }), await insert({ content: second.id })];
      await files.addMd5s(signal);
      await files.addMd5s(signal);
      const found = [];
      for (const { id } of [older, empty, damaged]) found.push((await store().find(id, signal))?.md5);
      expect(found).toEqual(["900150983cd24fb0d6963f7d28e17f72", null, null]);
    });

    test("uploads that were cut, or whose firmware is gone, are removed after an hour", async () => {
      const clock = new ManualClock();
      const files = filesOf(clock);
      const now = clock.now().getTime();
      const firmware = await insert();
      const content = newUpload(firmware.id, { begun_at: now - 7_200_000 });
      const cut = newUpload(firmware.id, { begun_at: now - 3_600_001 });
      const young = newUpload(firmware.id, { begun_at: now - 3_599_000 });
      const orphan = newUpload("gone", { begun_at: now - 7_200_000 });
      for (const upload of [content, cut, young, orphan]) {
        await store().insertUpload(upload, maxBytes, signal);
        await store().putPiece(upload.id, 0, Uint8Array.of(1), signal);
      }
      await store().setContent(firmware.id, content.id, "5d", signal);
      await files.removeBroken(signal);
      const left = [];
      for (const upload of [content, cut, young, orphan])
        left.push([(await store().findUpload(upload.id, signal)) !== null, await pieceOf(upload.id, 0)]);
      expect(left).toEqual([
        [true, [1]],
        [false, null],
        [true, [1]],
        [false, null],
      ]);
    });
  });
}
