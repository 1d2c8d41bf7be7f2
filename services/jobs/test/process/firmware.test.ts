import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { type Firmware, firmwareBounds } from "@devmesh/contracts/model/firmware";
import { ServiceError } from "@devmesh/service-kit/errors";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { describeOverStores } from "./describe-over-stores.ts";
import type { JobsFixture } from "./jobs-fixture.ts";

const { pieceBytes } = firmwareBounds;
const call = () => createCallContext({ timeoutMs: 20_000 });

const bytes = (length: number, seed = 1) =>
  Buffer.from(Uint8Array.from({ length }, (_, at) => (at * seed + (at >> 8)) % 251));
const digestOf = (content: Uint8Array) => createHash("sha256").update(content);

describeOverStores("firmware", (start) => {
  let fixture: JobsFixture;
  beforeAll(async () => {
    fixture = await start();
  });
  beforeEach(() => fixture.newStore());
  afterAll(async () => await fixture?.[Symbol.asyncDispose]());

  const jobs = () => fixture.firmware;
  let versions = 0;
  const declare = (content: Uint8Array, more: object = {}) =>
    jobs().createFirmware(
      {
        firmware: {
          name: "pump",
          version: `1.${++versions}`,
          size: content.length,
          sha256: digestOf(content).digest("hex"),
          ...more,
        },
        created_by: { kind: "master", key_id: "k" },
      },
      call(),
    );
  const put = (id: string, upload: string, number: number, content: Buffer) =>
    jobs().putContent(
      {
        id,
        upload,
        number,
        data: content.subarray(number * pieceBytes, (number + 1) * pieceBytes).toString("base64"),
      },
      call(),
    );
  const send = async (id: string, content: Buffer, upload: string = randomUUID()): Promise<Firmware> => {
    for (let number = 0; number * pieceBytes < content.length; number++)
      await put(id, upload, number, content);
    return jobs().endContent({ id, upload }, call());
  };
  const read = async (id: string, number: number) =>
    Buffer.from((await jobs().readContent({ id, number }, call())).data, "base64");
  const reasonOf = async (work: Promise<unknown>) => {
    const error: unknown = await work.then(
      () => "none",
      (reason: unknown) => reason,
    );
    return error instanceof ServiceError ? error.reason : error;
  };

  test("a content is read as it was sent, also after the service was killed", async () => {
    const content = bytes(2 * pieceBytes + 5);
    await fixture.restart();
    const firmware = await declare(content, {
      requires: { labels: { all: ["v2"] } },
      note: "Fixes the valve.",
    });
    expect(firmware).toMatchObject({
      ready: false,
      reported_as: firmware.version,
      signature: null,
      md5: null,
    });
    expect(await reasonOf(read(firmware.id, 0))).toBe("content_not_found");
    const ready = await send(firmware.id, content);
    const md5 = createHash("md5").update(content).digest("hex");
    expect(ready).toEqual({ ...firmware, ready: true, md5 });
    await fixture.restart();
    expect(await jobs().readFirmware({ id: firmware.id }, call())).toEqual(ready);
    expect(await jobs().listFirmware({}, call())).toEqual({ next: null, items: [ready] });
    const pieces = [await read(firmware.id, 0), await read(firmware.id, 1), await read(firmware.id, 2)];
    expect(Buffer.concat(pieces).equals(content)).toBe(true);
    expect(await reasonOf(read(firmware.id, 3))).toBe("content_not_found");
    expect(await reasonOf(declare(content, { version: firmware.version }))).toBe("firmware_exists");
  });

  test("an upload goes on after the service was killed", async () => {
    const content = bytes(2 * pieceBytes);
    await fixture.restart();
    const { id } = await declare(content);
    const upload = randomUUID();
    // A piece may be sent again where a busy machine gave no answer in time.
    await eventually(() => put(id, upload, 0, content));
    await fixture.restart();
    await eventually(() => put(id, upload, 1, content));
    expect(await jobs().endContent({ id, upload }, call())).toMatchObject({ ready: true });
    // The answer was lost.
    expect(await jobs().endContent({ id, upload }, call())).toMatchObject({ ready: true });
  });

  test("a content that is not what was declared leaves nothing", async () => {
    await fixture.restart({ FIRMWARE_MAX_BYTES: "1M" });
    const content = bytes(3 * pieceBytes);
    const { id } = await declare(content);
    const wrong = bytes(3 * pieceBytes, 3);
    // Twice the bytes would not fit.
    for (let round = 0; round < 2; round++) {
      expect(await reasonOf(send(id, wrong))).toBe("content_mismatch");
      const cut = randomUUID();
      await put(id, cut, 0, content);
      await put(id, cut, 1, content);
      expect(await reasonOf(jobs().endContent({ id, upload: cut }, call()))).toBe("content_mismatch");
      expect(await reasonOf(put(id, cut, 2, content))).toBe("content_mismatch");
    }
    const longer = randomUUID();
    expect(await reasonOf(put(id, longer, 3, bytes(4 * pieceBytes)))).toBe("content_mismatch");
    expect(await reasonOf(jobs().endContent({ id, upload: longer }, call()))).toBe("content_mismatch");
    expect(await jobs().readFirmware({ id }, call())).toMatchObject({ ready: false });
    expect(await send(id, content)).toMatchObject({ ready: true });
  });

  test("of uploads that race one becomes the content", async () => {
    await fixture.restart();
    const content = bytes(pieceBytes + 1);
    const { id } = await declare(content);
    const uploads = Array.from({ length: 5 }, () => randomUUID());
    for (const number of [0, 1]) await Promise.all(uploads.map((upload) => put(id, upload, number, content)));
    const ended = await Promise.all(
      uploads.map((upload) => reasonOf(jobs().endContent({ id, upload }, call()))),
    );
    expect(ended.toSorted()).toEqual([...Array.from({ length: 4 }, () => "content_exists"), "none"]);
    expect(await reasonOf(send(id, content))).toBe("content_exists");
    expect(Buffer.concat([await read(id, 0), await read(id, 1)]).equals(content)).toBe(true);
  });

  test("firmware that is deleted during an upload stays deleted", async () => {
    await fixture.restart();
    const content = bytes(pieceBytes);
    const { id } = await declare(content);
    const upload = randomUUID();
    await put(id, upload, 0, content);
    await jobs().deleteFirmware({ id }, call());
    expect(await reasonOf(jobs().endContent({ id, upload }, call()))).toBe("firmware_not_found");
    expect(await reasonOf(put(id, upload, 0, content))).toBe("firmware_not_found");
    expect(await reasonOf(jobs().readFirmware({ id }, call()))).toBe("firmware_not_found");
    expect(await jobs().listFirmware({}, call())).toEqual({ next: null, items: [] });
  });

  test("a file and all files are bounded", async () => {
    await fixture.restart({ FIRMWARE_MAX_FILE: "1M", FIRMWARE_MAX_BYTES: "1M" });
    expect(await reasonOf(declare(bytes(1024 ** 2 + 1)))).toBe("firmware_too_large");
    const [one, other] = [bytes(3 * pieceBytes), bytes(2 * pieceBytes)];
    const [first, second] = [await declare(one), await declare(other)];
    await send(first.id, one);
    expect(await reasonOf(send(second.id, other))).toBe("firmware_store_full");
    await jobs().deleteFirmware({ id: first.id }, call());
    await send(second.id, other);
  });

  test("with a public key, only firmware with its signature is taken", async () => {
    const [own, other] = [generateKeyPairSync("ed25519"), generateKeyPairSync("ed25519")];
    const spki = own.publicKey.export({ format: "der", type: "spki" }).toString("base64");
    await fixture.restart({ FIRMWARE_PUBLIC_KEY: spki });
    const content = bytes(10);
    const signedBy = (key: typeof own.privateKey) =>
      sign(null, digestOf(content).digest(), key).toString("base64");
    expect(await reasonOf(declare(content))).toBe("signature_invalid");
    expect(await reasonOf(declare(content, { signature: signedBy(other.privateKey) }))).toBe(
      "signature_invalid",
    );
    expect(await reasonOf(declare(content, { signature: "AAAA" }))).toBe("signature_invalid");
    const signature = signedBy(own.privateKey);
    expect(await declare(content, { signature })).toMatchObject({ signature });
  });

  test("with a public key, firmware that was declared before is sent by no job", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const spki = publicKey.export({ format: "der", type: "spki" }).toString("base64");
    await fixture.restart();
    const content = bytes(10);
    const signature = sign(null, digestOf(content).digest(), privateKey).toString("base64");
    const [unsigned, signed] = [await declare(content), await declare(content, { signature })];
    for (const { id } of [unsigned, signed]) await send(id, content);
    const pump = fixture.add("pump");
    const action = { kind: "firmware", firmware_id: unsigned.id, via: "push" } as const;
    const job = { target: { ids: ["pump"] }, action };
    const { id } = await fixture.createJob(job);
    await eventually(async () => (await fixture.readJob(id)).counts.queued === 1);

    await fixture.restart({ FIRMWARE_PUBLIC_KEY: spki });
    await fixture.connect("pump");
    await fixture.jobBecomes(id, "done");
    const [refused] = await fixture.listJobExecutions(id);
    expect(refused).toMatchObject({ state: "failed", reason: "not_eligible", attempts: 0 });
    expect(pump.received).toEqual([]);
    const refusal = { reason: "job_invalid", details: [{ pointer: "/action/firmware_id" }] };
    await expect(fixture.createJob(job)).rejects.toMatchObject(refusal);
    await expect(fixture.tryTarget(job.target, unsigned.id)).rejects.toMatchObject(refusal);
    expect(await fixture.tryTarget(job.target, signed.id)).toMatchObject({ devices: 1 });
    await fixture.createJob({ ...job, action: { ...action, firmware_id: signed.id } });
  });

  test("names and versions are lines without blanks around them", async () => {
    await fixture.restart();
    const content = bytes(10);
    const given = { name: " line\t", version: "1.1\n", reported_as: " 1.1\r\n" };
    const firmware = await declare(content, given);
    expect(firmware).toMatchObject({ name: "line", version: "1.1", reported_as: "1.1" });
    expect(await reasonOf(declare(content, { name: "line", version: "1.1" }))).toBe("firmware_exists");
    await expect(declare(content, { name: "a\nb", version: "1\u0000" })).rejects.toMatchObject({
      reason: "firmware_invalid",
      details: [{ pointer: "/name" }, { pointer: "/version" }],
    });
  });

  test("a job sends whole firmware alone, which is kept until the job has ended", async () => {
    await fixture.restart();
    const content = bytes(10);
    const { id: firmware_id } = await declare(content, { requires: { labels: { all: ["v2"] } } });
    fixture.add("pump");
    const action = { kind: "firmware", firmware_id, via: "push" } as const;
    const job = { target: { ids: ["pump"] }, action };
    await expect(fixture.createJob(job)).rejects.toMatchObject({
      reason: "job_invalid",
      details: [{ pointer: "/action/firmware_id" }],
    });
    const unknown = { ...job, action: { ...action, firmware_id: "none" } };
    expect(await reasonOf(fixture.createJob(unknown))).toBe("firmware_not_found");
    await send(firmware_id, content);
    const { id, retry } = await fixture.createJob(job);
    expect(retry).toEqual({ attempts: 3, on: ["failed", "timed_out"], after: "PT1M" });
    expect(await reasonOf(jobs().deleteFirmware({ id: firmware_id }, call()))).toBe("firmware_in_use");
    await fixture.changeJob(id, { state: "cancelled" });
    await eventually(
      async () => (await reasonOf(jobs().deleteFirmware({ id: firmware_id }, call()))) === "none",
    );
  });
});
