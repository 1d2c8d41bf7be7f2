import { createHash } from "node:crypto";

/** SHA-256 of a file, in hex. */
export function digestOf(image: Uint8Array): string {
  return createHash("sha256").update(image).digest("hex");
}

/**
 * The version of an image, as a simulated device runs it: a first line such as `version=1.4.0`, of up to 64 characters.
 * Any other content has the first 12 hex digits of its SHA-256.
 */
export function versionOf(image: Buffer): string {
  const line = /^version=([!-~]{1,64})\r?(\n|$)/.exec(image.toString("latin1", 0, 80));
  return line?.[1] ?? digestOf(image).slice(0, 12);
}
