import type { Json } from "@devmesh/contracts/model/json";

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

const utf8 = new TextDecoder("utf-8", { fatal: true });
