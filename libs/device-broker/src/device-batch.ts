import { type BatchKind, batchKinds } from "@devmesh/contracts/mqtt";

/** The layout below; a reader refuses any other. */
const version = 1;

/** Most messages of a batch. */
export const maxBatchMessages = 1_000;

/** Bytes of messages beyond which a batch takes no further one; a single message may be larger. */
export const maxBatchBytes = 512 * 1024;

/** Bytes of a batch's header without the texts in it, and of a message without its device, topic and payload. */
const headerBytes = 1 + 2 + 1 + 8 + 8 + 4;
const messageBytes = 1 + 8 + 1 + 2 + 4;

const flag = { retain: 0x04, dup: 0x08, will: 0x10 } as const;

/** A message that a device published, in a batch. */
export interface BatchedMessage {
  /** The device that published it: the front has checked that it may use the topic. */
  readonly deviceId: string;
  /** Any text without `+`, `#` and U+0000: blanks, dots, `*` and `>` are ordinary. */
  readonly topic: string;
  /** Where it was read from a batch, a view of the batch's bytes. */
  readonly payload: Uint8Array;
  /** When the front received it, in Unix milliseconds. */
  readonly receivedAt: number;
  readonly qos: 0 | 1 | 2;
  readonly retain: boolean;
  /** The device has sent it before, and it may be stored already. */
  readonly dup: boolean;
  /** It is the will of a connection that ended. */
  readonly will: boolean;
}

/** Identity of a batch; the number grows by one with each batch of a front's life. */
export interface BatchHeader {
  /** Number of the stream that it is in. */
  readonly shard: number;
  /** The front, and a number that is new each time that it starts. */
  readonly front: string;
  readonly bootId: bigint;
  /** From 1 on, for each shard and kind. */
  readonly number: number;
}

/** All that devices sent for one shard and kind while the batch before it was stored. */
export interface DeviceBatch extends BatchHeader {
  /** In the order in which the front received them. */
  readonly messages: readonly BatchedMessage[];
}

/** A batch that is cut off or has another version. Its bytes must not be acknowledged as read. */
export class UnreadableBatch extends Error {}

/** Subject of the batches of a shard and kind. */
export function batchSubject(shard: number, kind: BatchKind): string {
  return `ingest.${shard}.${kind}`;
}

/** Stream of the batches of a shard. */
export function batchStream(shard: number): string {
  return `DEVICE_${shard}`;
}

/** Subjects of the stream of a shard. */
export function batchSubjects(shard: number): string[] {
  return batchKinds.map((kind) => batchSubject(shard, kind));
}

/** `Nats-Msg-Id` of a batch: one that is sent again is stored once. */
export function batchMessageId(kind: BatchKind, { front, bootId, number }: BatchHeader): string {
  return `${front}.${bootId}.${kind}.${number}`;
}

/** Bytes that a message takes in a batch. */
export function batchedBytes({ deviceId, topic, payload }: BatchedMessage): number {
  return messageBytes + deviceId.length + Buffer.byteLength(topic) + payload.length;
}

/**
 * The bytes of a batch, big-endian: version (1 byte), shard (2), length of `front` (1), front, boot id (8), number (8),
 * count (4); then for each message flags with the QoS in the lowest two bits (1), time (8, a double), length of the
 * device id (1), of the topic (2) and of the payload (4), and these three.
 */
export function encodeDeviceBatch({ shard, front, bootId, number, messages }: DeviceBatch): Buffer {
  const size = messages.reduce((sum, message) => sum + batchedBytes(message), headerBytes + front.length);
  const bytes = Buffer.allocUnsafe(size);
  let at = bytes.writeUInt8(version, 0);
  at = bytes.writeUInt16BE(shard, at);
  at = bytes.writeUInt8(front.length, at);
  at += bytes.write(front, at, "latin1");
  at = bytes.writeBigUInt64BE(bootId, at);
  at = bytes.writeBigUInt64BE(BigInt(number), at);
  at = bytes.writeUInt32BE(messages.length, at);
  for (const message of messages) {
    const { deviceId, topic, payload, receivedAt } = message;
    bytes[at++] = flagsOf(message);
    at = bytes.writeDoubleBE(receivedAt, at);
    bytes[at++] = deviceId.length;
    const lengthAt = at;
    at = bytes.writeUInt32BE(payload.length, at + 2);
    at += bytes.write(deviceId, at, "latin1");
    const topicBytes = bytes.write(topic, at, "utf8");
    bytes.writeUInt16BE(topicBytes, lengthAt);
    at += topicBytes;
    bytes.set(payload, at);
    at += payload.length;
  }
  return bytes;
}

function flagsOf({ qos, retain, dup, will }: BatchedMessage): number {
  return qos | (retain ? flag.retain : 0) | (dup ? flag.dup : 0) | (will ? flag.will : 0);
}

/** Reads a batch; payloads are views of `bytes`. Throws {@link UnreadableBatch}. */
export function decodeDeviceBatch(bytes: Uint8Array): DeviceBatch {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer[0] !== version) throw new UnreadableBatch(`a batch has version ${buffer[0]}, not ${version}`);
  try {
    return readBatch(buffer);
  } catch (cause) {
    if (cause instanceof UnreadableBatch) throw cause;
    // Node refuses to read beyond the bytes.
    throw new UnreadableBatch("a batch is cut off", { cause });
  }
}

function readBatch(buffer: Buffer): DeviceBatch {
  const shard = buffer.readUInt16BE(1);
  const frontEnd = 4 + buffer.readUInt8(3);
  const front = buffer.toString("latin1", 4, frontEnd);
  const bootId = buffer.readBigUInt64BE(frontEnd);
  const number = Number(buffer.readBigUInt64BE(frontEnd + 8));
  const count = buffer.readUInt32BE(frontEnd + 16);
  const messages: BatchedMessage[] = [];
  let at = frontEnd + 20;
  for (let read = 0; read < count; read++) {
    const flags = buffer.readUInt8(at);
    const receivedAt = buffer.readDoubleBE(at + 1);
    const deviceAt = at + messageBytes;
    const topicAt = deviceAt + buffer.readUInt8(at + 9);
    const payloadAt = topicAt + buffer.readUInt16BE(at + 10);
    at = payloadAt + buffer.readUInt32BE(at + 12);
    if (at > buffer.length) throw new UnreadableBatch("a message ends after its batch");
    messages.push({
      deviceId: buffer.toString("latin1", deviceAt, topicAt),
      topic: buffer.toString("utf8", topicAt, payloadAt),
      payload: buffer.subarray(payloadAt, at),
      receivedAt,
      qos: qosOf(flags & 3),
      retain: (flags & flag.retain) !== 0,
      dup: (flags & flag.dup) !== 0,
      will: (flags & flag.will) !== 0,
    });
  }
  if (at !== buffer.length)
    throw new UnreadableBatch(`${buffer.length - at} bytes follow the end of a batch`);
  return { shard, front, bootId, number, messages };
}

function qosOf(bits: number): 0 | 1 | 2 {
  if (bits === 0 || bits === 1 || bits === 2) return bits;
  throw new UnreadableBatch("a message of a batch has QoS 3");
}
