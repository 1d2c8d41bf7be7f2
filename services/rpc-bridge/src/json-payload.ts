import { checkNumbers } from "@devmesh/contracts/model/exact-numbers";
import type { Json } from "@devmesh/contracts/model/json";
import { type Violation, ViolationList } from "@devmesh/contracts/model/violation";

/** A JSON text of so many bytes is never too deep to be serialised again. */
const certainlyWritableBytes = 8 * 1024;

export interface JsonPayload {
  readonly value: Json;
  /** The numbers that `value` could only pass on as others, such as `1e400`. */
  readonly changed: readonly Violation[];
}

/** A payload as JSON; undefined when it is not UTF-8, not JSON, or too deep for `JSON.stringify`. */
export function parseJsonPayload(payload: Uint8Array): JsonPayload | undefined {
  try {
    const text = utf8.decode(payload);
    const value: Json = JSON.parse(text);
    if (payload.byteLength > certainlyWritableBytes) JSON.stringify(value);
    const changed = new ViolationList();
    checkNumbers(text, changed);
    return { value, changed: changed.list };
  } catch {
    return undefined;
  }
}

/** At most three: the message must fit a small device. */
export function firstOf(violations: readonly Violation[]): string {
  return violations
    .slice(0, 3)
    .map(({ pointer, detail }) => `${pointer} ${detail}`.trim())
    .join("; ");
}

const utf8 = new TextDecoder("utf-8", { fatal: true });
