import { isUtf8 } from "node:buffer";
import { type DataMessage, type DeliveryKey, maxPayloadBytes } from "../store/data-store.ts";
import { parseDataTopic, type UnusableTopic } from "./data-topic.ts";

/** A message as the broker hands it over. */
export interface IncomingMessage {
  /** Levels of the topic, as the device chose them. */
  readonly topicLevels: readonly string[];
  readonly payload: Uint8Array;
  /** When the broker took it; Unix milliseconds. */
  readonly timestamp: number;
  /** Null at QoS 0. */
  readonly delivery: DeliveryKey | null;
}

/** Why a message can never be stored; the label of its count. */
export type Unstorable = UnusableTopic | "topic_too_long" | "too_large";

/** The most that a topic may weigh, in bytes. */
const maxTopicBytes = 4_096;
/**
 * The most that a text may weigh as JSON, in bytes, so that each record fits into a reply. Only a payload of almost
 * nothing but control characters or quotes gets there; it is shown as base64, which grows by a third at most.
 */
const maxTextBytes = 400 * 1024;
/** A byte becomes six at most: `\\u0000`. */
const worstGrowth = 6;

/** What can be stored of a message, or why nothing can. */
export function checkMessage({
  topicLevels,
  payload,
  timestamp,
  delivery,
}: IncomingMessage): DataMessage | Unstorable {
  if (payload.length > maxPayloadBytes) return "too_large";
  const parsed = parseDataTopic(topicLevels);
  if (typeof parsed === "string") return parsed;
  if (Buffer.byteLength(parsed.topic) > maxTopicBytes) return "topic_too_long";
  return { delivery, timestamp, ...parsed, payload, encoding: isShowable(payload) ? "text" : "base64" };
}

function isShowable(payload: Uint8Array): boolean {
  if (!isUtf8(payload)) return false;
  if (payload.length * worstGrowth <= maxTextBytes) return true;
  return Buffer.byteLength(JSON.stringify(Buffer.from(payload).toString("utf8"))) <= maxTextBytes;
}
