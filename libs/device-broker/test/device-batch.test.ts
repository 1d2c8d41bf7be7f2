import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  batchedBytes,
  batchMessageId,
  type DeviceBatch,
  decodeDeviceBatch,
  encodeDeviceBatch,
  UnreadableBatch,
} from "../src/device-batch.ts";

const anyBatch: fc.Arbitrary<DeviceBatch> = fc.record({
  shard: fc.nat(65_535),
  front: fc.constantFrom("", "x4Tn8", "mqtt-7c9f-abcde"),
  bootId: fc.bigInt(0n, 2n ** 64n - 1n),
  number: fc.nat(),
  messages: fc.array(
    fc.record({
      deviceId: fc.constantFrom("a", "pump-1", "x".repeat(64)),
      topic: fc.string({ unit: "binary", maxLength: 50 }).map((text) => `db/a/${text} .*>é`),
      payload: fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
      receivedAt: fc.constantFrom(0, 1_790_000_000_123, 0.5),
      qos: fc.constantFrom(0 as const, 1 as const, 2 as const),
      retain: fc.boolean(),
      dup: fc.boolean(),
      will: fc.boolean(),
    }),
    { maxLength: 5 },
  ),
});

describe("a batch of messages of devices", () => {
  test("is read as it was written, with the size that was counted", () => {
    fc.assert(
      fc.property(anyBatch, (batch) => {
        const bytes = encodeDeviceBatch(batch);
        expect(decodeDeviceBatch(bytes)).toEqual(batch);
        const counted = batch.messages.reduce((sum, message) => sum + batchedBytes(message), 0);
        expect(bytes.length).toBe(24 + batch.front.length + counted);
      }),
      { seed: 37, numRuns: 500 },
    );
  });

  test("is read without copying payloads", () => {
    const payload = Buffer.from("21");
    const flags = { qos: 1, retain: false, dup: false, will: false } as const;
    const message = { deviceId: "a", topic: "db/a/t", payload, receivedAt: 1, ...flags };
    const bytes = encodeDeviceBatch({ shard: 0, front: "f", bootId: 1n, number: 1, messages: [message] });
    expect(decodeDeviceBatch(bytes).messages[0]?.payload.buffer).toBe(bytes.buffer);
  });

  test("that is cut off, has more bytes or was changed is refused or read, and nothing else is thrown", () => {
    fc.assert(
      fc.property(anyBatch, fc.nat(400), fc.nat(255), (batch, at, value) => {
        const bytes = encodeDeviceBatch(batch);
        expect(() => decodeDeviceBatch(bytes.subarray(0, at % bytes.length))).toThrow(UnreadableBatch);
        expect(() => decodeDeviceBatch(Buffer.concat([bytes, Buffer.from([0])]))).toThrow(UnreadableBatch);
        bytes[at % bytes.length] = value;
        try {
          decodeDeviceBatch(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableBatch);
        }
      }),
      { seed: 37, numRuns: 200 },
    );
  });

  test("of another version is refused", () => {
    expect(() => decodeDeviceBatch(Buffer.from([2, 0, 0]))).toThrow("a batch has version 2, not 1");
    expect(() => decodeDeviceBatch(Buffer.alloc(0))).toThrow(UnreadableBatch);
  });

  test("has an id that no other batch of its kind has, in any life of its front", () => {
    const header = { shard: 0, front: "f", bootId: 2n ** 60n, number: 5 };
    expect(batchMessageId("records", header)).toBe("f.1152921504606846976.records.5");
  });
});
