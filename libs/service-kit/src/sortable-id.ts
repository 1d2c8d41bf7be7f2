import { randomBytes } from "node:crypto";
import type { Clock } from "./clock.ts";

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * A source of UUIDs version 7 (RFC 9562) with a counter after the milliseconds: they always ascend, also within a
 * millisecond and when the clock goes back.
 */
export function createIdSource(clock: Clock): () => string {
  let lastMs = 0;
  let counter = 0;
  return () => {
    const nowMs = clock.now().getTime();
    if (nowMs > lastMs) {
      lastMs = nowMs;
      counter = 0;
    } else if (++counter > 0xfff) {
      lastMs += 1;
      counter = 0;
    }
    const time = lastMs.toString(16).padStart(12, "0");
    const random = randomBytes(8);
    random.writeUInt8(((random[0] ?? 0) & 0x3f) | 0x80, 0);
    const tail = random.toString("hex");
    const middle = `7${counter.toString(16).padStart(3, "0")}`;
    return `${time.slice(0, 8)}-${time.slice(8)}-${middle}-${tail.slice(0, 4)}-${tail.slice(4)}`;
  };
}

/** Whether a text has the form of such an id; checks cursors. */
export function isSortableId(text: string): boolean {
  return pattern.test(text);
}
