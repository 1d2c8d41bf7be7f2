import { createHash } from "node:crypto";
import { keyPrefixes } from "@devmesh/contracts/model/api-key";
import { randomSecret } from "@devmesh/service-kit/random-secret";

/** Decides the prefix of a secret (api.md, Keys). */
export type SecretKind = keyof typeof keyPrefixes;

/** A new secret with the prefix of its kind. */
export function createSecret(kind: SecretKind): string {
  return randomSecret(keyPrefixes[kind]);
}

/** SHA-256 of a secret, to find it by. A secret has 190 random bits, so it needs neither salt nor stretching. */
export function digestSecret(secret: string): Uint8Array {
  return createHash("sha256").update(secret, "utf8").digest();
}
