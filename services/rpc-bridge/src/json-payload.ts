import { hasFiniteNumbers, isDeeperThan, type Json, maxJsonDepth } from "@devmesh/contracts/model/json";

/** Up to this many bytes no JSON text is nested so deep that it cannot be written again. */
const certainlyWritableBytes = 8 * 1024;

/**
 * A payload as JSON; undefined when it is not UTF-8, not JSON, or nested deeper than the stack can write again
 * (`JSON.parse` goes further down than `JSON.stringify`).
 */
export function parseJsonPayload(payload: Uint8Array): Json | undefined {
  try {
    const value: Json = JSON.parse(utf8.decode(payload));
    if (payload.byteLength > certainlyWritableBytes) JSON.stringify(value);
    return value;
  } catch {
    return undefined;
  }
}

/**
 * Whether a number of the payload, such as `1e400`, was out of range, so that it would be written again as null. What
 * is nested deeper than `maxJsonDepth` is not looked through.
 */
export function hasNumberOutOfRange(value: Json): boolean {
  return !isDeeperThan(value, maxJsonDepth) && !hasFiniteNumbers(value);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });
