import { isUtf8 } from "node:buffer";
import { DeviceId, recordRoot } from "@devmesh/contracts/model/device-id";
import { mqttBounds } from "@devmesh/contracts/mqtt";
import { type DataMessage, type DeliveryKey, maxPayloadBytes } from "../store/data-store.ts";

/** A message as the broker delivers it. */
export interface IncomingMessage {
  /** Levels of the topic, as the device chose them. */
  readonly topicLevels: readonly string[];
  readonly payload: Uint8Array;
  /** When the broker took it; Unix milliseconds. */
  readonly timestamp: number;
  /** Null at QoS 0. */
  readonly delivery: DeliveryKey | null;
}

/** Why a topic is none of a record. */
type InvalidTopic = "no_device" | "no_name";

/** Why a message can never be stored; the label of its count. */
export type Unstorable = InvalidTopic | "topic_too_long" | "too_large";

/** A text that is larger as JSON, in bytes, is shown as base64, so that each record fits into a reply. */
const maxTextBytes = 400 * 1024;
/** A byte becomes six at most: `\\u0000`. */
const maxJsonGrowth = 6;

/** The topic a device published on, by its levels. A name is required after the device. */
export function parseDataTopic(
  levels: readonly string[],
): Pick<DataMessage, "deviceId" | "topic"> | InvalidTopic {
  const [root, deviceId, name] = levels;
  if (root !== recordRoot || deviceId === undefined || !DeviceId.safeParse(deviceId).success)
    return "no_device";
  if (name === undefined) return "no_name";
  return { deviceId, topic: levels.join("/") };
}

/** The message to store, or why it cannot be stored. */
export function checkMessage({
  topicLevels,
  payload,
  timestamp,
  delivery,
}: IncomingMessage): DataMessage | Unstorable {
  if (payload.length > maxPayloadBytes) return "too_large";
  const parsed = parseDataTopic(topicLevels);
  if (typeof parsed === "string") return parsed;
  if (Buffer.byteLength(parsed.topic) > mqttBounds.recordTopicBytes) return "topic_too_long";
  return { delivery, timestamp, ...parsed, payload, encoding: isShowable(payload) ? "text" : "base64" };
}

function isShowable(payload: Uint8Array): boolean {
  if (!isUtf8(payload)) return false;
  if (payload.length * maxJsonGrowth <= maxTextBytes) return true;
  return Buffer.byteLength(JSON.stringify(Buffer.from(payload).toString("utf8"))) <= maxTextBytes;
}
