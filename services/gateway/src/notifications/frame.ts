import { redactSecrets } from "@devmesh/contracts/model/api-key";
import type { Json } from "@devmesh/contracts/model/json";
import type { Notification } from "@devmesh/contracts/model/notification";
import type { Timestamp } from "@devmesh/contracts/model/time";
import type { z } from "zod";

/** Frames are messages of a WebSocket, or events of `text/event-stream`. */
export const streamFormats = ["websocket", "event_stream"] as const;

export type StreamFormat = (typeof streamFormats)[number];

/**
 * One frame of the notification stream. It is encoded once for each format, whatever the number of listeners: a server
 * masks nothing that it sends over a WebSocket (RFC 6455, 5.1).
 */
export class Frame implements Notification {
  readonly seq: number;
  readonly id: string | null;
  readonly name: string;
  readonly data: Json;
  readonly timestamp: z.infer<typeof Timestamp>;
  #websocket: Buffer | undefined;
  #eventStream: Buffer | undefined;
  #redacted: Frame | undefined;

  constructor({ seq, id, name, data, timestamp }: Notification) {
    this.seq = seq;
    this.id = id;
    this.name = name;
    this.data = data;
    this.timestamp = timestamp;
  }

  /** The frame with the keys in it redacted; itself where it has none. */
  get redacted(): Frame {
    if (this.#redacted !== undefined) return this.#redacted;
    const text = this.#json();
    const redacted = redactSecrets(text);
    this.#redacted = redacted === text ? this : new Frame(JSON.parse(redacted));
    return this.#redacted;
  }

  bytes(format: StreamFormat): Buffer {
    if (format === "websocket") {
      this.#websocket ??= textMessage(this.#json());
      return this.#websocket;
    }
    this.#eventStream ??= Buffer.from(`id: ${this.seq}\ndata: ${this.#json()}\n\n`);
    return this.#eventStream;
  }

  /** Members in the order of the contract. */
  #json(): string {
    const { seq, id, name, data, timestamp } = this;
    return JSON.stringify({ seq, id, name, data, timestamp });
  }
}

/** The bytes of several frames, for a single write. */
export function joinFrames(frames: readonly Frame[], format: StreamFormat): Buffer {
  const [only] = frames;
  if (frames.length === 1 && only !== undefined) return only.bytes(format);
  return Buffer.concat(frames.map((frame) => frame.bytes(format)));
}

/** A frame before which others may be missing: of these names, or of any. */
export function gapFrame(seq: number, at: Date, names?: readonly string[]): Frame {
  const data = names === undefined ? {} : { names: [...names] };
  return new Frame({ seq, id: null, name: "gap", data, timestamp: at.toISOString() });
}

/** An unfragmented, unmasked text message (RFC 6455, 5.2). */
function textMessage(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const headerLength = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const message = Buffer.allocUnsafe(headerLength + length);
  message[0] = 0x81;
  if (headerLength === 2) message[1] = length;
  else if (headerLength === 4) {
    message[1] = 126;
    message.writeUInt16BE(length, 2);
  } else {
    message[1] = 127;
    message.writeBigUInt64BE(BigInt(length), 2);
  }
  message.write(text, headerLength);
  return message;
}
