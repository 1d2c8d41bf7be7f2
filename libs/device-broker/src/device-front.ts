import type { BatchKind } from "@devmesh/contracts/mqtt";
import type { Bus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { isNoResponders } from "@devmesh/service-kit/connection/requests";
import { ensureStream, storeMessage } from "@devmesh/service-kit/connection/streams";
import { DiscardPolicy, RetentionPolicy } from "@nats-io/jetstream";
import { errors, nanos } from "@nats-io/nats-core";
import { z } from "zod";
import {
  type BatchHeader,
  batchMessageId,
  batchStream,
  batchSubject,
  batchSubjects,
} from "./device-batch.ts";

/** How long a front that sends a batch again may take for the second one to be recognised, in milliseconds. */
const duplicateWindowMs = 2 * 60_000;

/** How long the fronts of a device may take to answer, in milliseconds. */
const deliveryMs = 2_000;

/** The stream of what devices publish at QoS 1 and 2, of which each batch has one consumer. */
export async function ensureBatchStream(bus: Bus, shard: number, maxBytes: number): Promise<void> {
  await ensureStream(bus, {
    name: batchStream(shard),
    subjects: batchSubjects(shard),
    retention: RetentionPolicy.Workqueue,
    // Full means no acknowledgement, rather than the loss of what was acknowledged.
    discard: DiscardPolicy.New,
    max_bytes: maxBytes,
    duplicate_window: nanos(duplicateWindowMs),
  });
}

/** Resolves when a batch is stored; throws `unavailable` when that is not known: send it again. */
export async function storeBatch(
  bus: Bus,
  kind: BatchKind,
  { header, bytes }: { readonly header: BatchHeader; readonly bytes: Uint8Array },
): Promise<void> {
  const dedupeId = batchMessageId(kind, header);
  await storeMessage(bus, batchSubject(header.shard, kind), bytes, { dedupeId });
}

/** Publishes a batch of messages at QoS 0, which nobody keeps. */
export function publishLiveBatch(bus: Bus, shard: number, kind: BatchKind, bytes: Uint8Array): void {
  bus[natsConnection].publish(liveBatchSubject(shard, kind), bytes);
}

/** Subject of batches of messages at QoS 0. */
export function liveBatchSubject(shard: number, kind: BatchKind): string {
  return `live.${shard}.${kind}`;
}

/** Subject of the replies of devices to the calls of a replica; null for those of firmware that names none. */
export function replySubject(replica: string | null): string {
  return replica === null ? "replies" : `replies.${replica}`;
}

/** Whether a level of a topic may be a token of a subject. */
const isToken = /^[A-Za-z0-9_-]{1,64}$/;

/** Passes the reply of a device on to the replica that has called it; to none where the topic names no replica. */
export function publishReply(bus: Bus, replica: string | null, bytes: Uint8Array): void {
  if (replica === null || isToken.test(replica)) bus[natsConnection].publish(replySubject(replica), bytes);
}

/** Fields of a message to a device, without its payload. */
const MessageHead = z.object({
  topic: z.string(),
  qos: z.union([z.literal(0), z.literal(1), z.literal(2)]),
  retain: z.boolean().optional(),
  /** Unix milliseconds after which it is worth nothing. */
  expires_at: z.number().optional(),
  /** The client id that published it, if a device did. */
  publisher: z.string().optional(),
});

/** A message to a device, to all its connections. */
export interface MessageToDevice extends z.infer<typeof MessageHead> {
  readonly payload: Uint8Array;
}

/** Outcome of a message; `not_connected` means that the broker has proved that nothing was sent. */
export type DeviceDelivery = "delivered" | "not_subscribed" | "not_connected";

function deviceSubject(deviceId: string): string {
  return `device.${deviceId}`;
}

/** Length of the head in two bytes, the head as JSON, and the payload as it is. */
function encodeMessage({ payload, ...head }: MessageToDevice): Buffer {
  const text = Buffer.from(JSON.stringify(head));
  const length = Buffer.allocUnsafe(2);
  length.writeUInt16BE(text.length);
  return Buffer.concat([length, text, payload]);
}

/** Null for a message that cannot be read. */
function decodeMessage(data: Uint8Array): MessageToDevice | null {
  if (data.length < 2) return null;
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const end = 2 + bytes.readUInt16BE(0);
  try {
    const head = MessageHead.parse(JSON.parse(bytes.toString("utf8", 2, end)));
    return { ...head, payload: bytes.subarray(end) };
  } catch {
    return null;
  }
}

/** Sends a message to a device; throws when no front answers in time. */
export async function sendToDevice(
  bus: Bus,
  deviceId: string,
  message: MessageToDevice,
): Promise<DeviceDelivery> {
  try {
    const reply = await bus.request(deviceSubject(deviceId), encodeMessage(message), {
      timeoutMs: deliveryMs,
    });
    return reply.string() === "delivered" ? "delivered" : "not_subscribed";
  } catch (error) {
    if (error instanceof errors.NoRespondersError) return "not_connected";
    throw error;
  }
}

/**
 * Takes messages for a device as long as it has a connection here; `deliver` says whether one was written to a matching
 * subscription. The broker knows of it after the next `flush` of the bus. Returns its end.
 */
export function takeMessagesFor(
  bus: Bus,
  deviceId: string,
  deliver: (message: MessageToDevice) => boolean,
): () => void {
  const subscription = bus[natsConnection].subscribe(deviceSubject(deviceId), {
    callback: (error, msg) => {
      if (error !== null) {
        bus.log.error({ err: error, device: deviceId }, "messages to a device can no longer be taken");
        return;
      }
      const message = isNoResponders(msg) ? null : decodeMessage(msg.data);
      if (message === null)
        bus.log.warn({ device: deviceId }, "an unreadable message to a device was dropped");
      else msg.respond(deliver(message) ? "delivered" : "not_subscribed");
    },
  });
  return () => subscription.unsubscribe();
}
