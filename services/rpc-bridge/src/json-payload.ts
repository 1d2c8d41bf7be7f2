import { hasFiniteNumbers, isDeeperThan, type Json, maxJsonDepth } from "@devmesh/contracts/model/json";

/** A JSON text of so many bytes is never too deep to be serialised again. */
const certainlyWritableBytes = 8 * 1024;

/** A payload as JSON; undefined when it is not UTF-8, not JSON, or too deep for `JSON.stringify`. */
export function parseJsonPayload(payload: Uint8Array): Json | undefined {
  try {
    const value: Json = JSON.parse(utf8.decode(payload));
    if (payload.byteLength > certainlyWritableBytes) JSON.stringify(value);
    return value;
  } catch {
    return undefined;
  }
}

/** Whether a number, such as `1e400`, would be serialised as null. Values deeper than `maxJsonDepth` pass. */
export function hasNumberOutOfRange(value: Json): boolean {
  return !isDeeperThan(value, maxJsonDepth) && !hasFiniteNumbers(value);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });
