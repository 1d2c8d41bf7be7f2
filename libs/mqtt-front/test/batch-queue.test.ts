import { type BatchedMessage, decodeDeviceBatch } from "@devmesh/device-broker/device-batch";
import { describe, expect, test } from "@jest/globals";
import { BatchQueue } from "../src/batches/batch-queue.ts";

const header = { shard: 0, front: "f", bootId: 7n };

function text(payload: string | Buffer): BatchedMessage {
  const flags = { qos: 1, retain: false, dup: false, will: false } as const;
  return { deviceId: "d", topic: "db/d/t", payload: Buffer.from(payload), receivedAt: 1, ...flags };
}

function textsOf(bytes: Uint8Array | undefined): string[] {
  if (bytes === undefined) throw new Error("there is no batch");
  return decodeDeviceBatch(bytes).messages.map(({ payload }) => Buffer.from(payload).toString());
}

describe("a queue of batches", () => {
  test("collects what comes while a batch is stored, and keeps the order", () => {
    const queue = new BatchQueue<number>(header);
    expect(queue.take()).toBe(null);
    queue.add(text("a"), 1);
    const first = queue.take();
    queue.add(text("b"), 2);
    queue.add(text("c"), 3);
    expect(queue.take()).toBe(null);
    expect(queue.inFlight).toBe(first);
    expect(queue.stored()).toEqual([1]);
    const second = queue.take();
    expect([textsOf(first?.bytes), textsOf(second?.bytes)]).toEqual([["a"], ["b", "c"]]);
    expect([first, second].map((batch) => batch?.header.number)).toEqual([1, 2]);
    expect(queue.stored()).toEqual([2, 3]);
    expect(queue.stored()).toEqual([]);
  });

  test("takes at most 1,000 messages into a batch", () => {
    const queue = new BatchQueue<number>(header);
    for (let at = 0; at < 2_500; at++) queue.add(text(String(at)), at);
    const sizes = [1, 2, 3].map(() => {
      queue.take();
      return queue.stored();
    });
    expect(sizes.map(({ length }) => length)).toEqual([1_000, 1_000, 500]);
    expect(sizes.flat()).toEqual(Array.from({ length: 2_500 }, (_, at) => at));
  });

  test("takes at most 512 KB into a batch, or one message that is larger", () => {
    const queue = new BatchQueue<number>(header);
    for (const bytes of [200_000, 300_000, 50_000, 600_000, 1]) queue.add(text(Buffer.alloc(bytes)), bytes);
    const receipts = [1, 2, 3, 4].map(() => (queue.take() === null ? null : queue.stored()));
    expect(receipts).toEqual([[200_000, 300_000], [50_000], [600_000], [1]]);
  });

  test("is full while 32 MB wait", () => {
    const queue = new BatchQueue<number>(header);
    for (let at = 0; at < 33; at++) queue.add(text(Buffer.alloc(1_000_000)), at);
    expect(queue.isFull).toBe(false);
    queue.add(text(Buffer.alloc(1_000_000)), 34);
    expect(queue.isFull).toBe(true);
    queue.take();
    expect(queue.isFull).toBe(false);
  });
});
