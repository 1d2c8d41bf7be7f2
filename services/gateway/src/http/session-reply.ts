import { redactedSecret, redactSecrets } from "@devmesh/contracts/model/api-key";
import type { Json } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import type { Violation } from "@devmesh/contracts/model/violation";
import type { KeyKind } from "@devmesh/contracts/principal";
import { isStreamed, type Reply } from "./exchange.ts";

/**
 * An answer as its caller may read it. A session gets no secret (ADR 28): keys that are in a text by chance, such as a
 * shadow, a record, a customer's `meta` or the error of a device, are redacted in whatever it reads.
 */
export function shownTo(keyKind: KeyKind | "none", reply: Reply): Reply {
  const { body, headers } = reply;
  // The content of firmware is checked by its digest.
  if (keyKind !== "session" || body === undefined || headers["Content-Type"] === "application/octet-stream")
    return reply;
  return { ...reply, body: isStreamed(body) ? redactedChunks(body) : redacted(bytesAsText(body)) };
}

/** The beginning of a secret, at the end of a text. */
const secretBegins = /[0-9A-Za-z_]{1,34}$/;

async function* redactedChunks(
  chunks: AsyncIterable<Uint8Array | string>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let held = "";
  for await (const chunk of chunks) {
    const text = redactSecrets(held + bytesAsText(chunk));
    held = secretBegins.exec(text)?.[0] ?? "";
    yield textAsBytes(text.slice(0, text.length - held.length));
  }
  if (held !== "") yield textAsBytes(held);
}

const redacted = (text: string): Uint8Array => textAsBytes(redactSecrets(text));

/** A character for each byte: a secret is ASCII, and a chunk may end within a character. */
function bytesAsText(chunk: Uint8Array | string): string {
  return (
    typeof chunk === "string"
      ? Buffer.from(chunk)
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  ).toString("latin1");
}

function textAsBytes(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

/** Adds each text of a body that has a redacted key in it: written back, it would replace the key. */
export function findRedacted(value: Json, violations: Violation[], pointer = ""): void {
  const refuse = (at: string) =>
    violations.push({
      pointer: at,
      detail: "holds a redacted key, as sessions read it: leave the member out, or sign in with a master key",
    });
  if (typeof value === "string" && redactedSecret.test(value)) refuse(pointer);
  if (typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const at = pointer + pointerToken(name);
    if (redactedSecret.test(name)) refuse(at);
    findRedacted(member, violations, at);
  }
}
