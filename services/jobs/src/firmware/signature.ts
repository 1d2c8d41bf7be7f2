import { type KeyObject, verify } from "node:crypto";
import type { StoredFirmware } from "../store/firmware-store.ts";

/** Whether a file may be sent to devices: it has the signature of the key over its SHA-256, or there is no key. */
export type IsSigned = (file: Pick<StoredFirmware, "sha256" | "signature">) => boolean;

/** Checks Ed25519 signatures by a public key; undefined: signatures are not checked. */
export function createSignatureCheck(publicKey: KeyObject | undefined): IsSigned {
  if (publicKey === undefined) return () => true;
  return ({ sha256, signature }) =>
    signature !== null &&
    verify(null, Buffer.from(sha256, "hex"), publicKey, Buffer.from(signature, "base64"));
}
