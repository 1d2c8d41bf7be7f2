import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { PeerCertificate } from "node:tls";

/** Options of `tls.connect`. */
export interface PinnedCertificate {
  readonly ca: Buffer;
  readonly allowPartialTrustChain: true;
  readonly checkServerIdentity: (host: string, presented: PeerCertificate) => Error | undefined;
}

/**
 * Makes a TLS client accept the first certificate of a PEM file and no other, whatever host it names: for a server
 * reached at an address such as 127.0.0.1. Call it for each connection, to follow a renewal. Throws when the file holds
 * no certificate.
 */
export function pinnedCertificate(file: string): PinnedCertificate {
  const pem = readFileSync(file);
  const expected = new X509Certificate(pem);
  return {
    ca: pem,
    allowPartialTrustChain: true,
    checkServerIdentity: (_host, presented) =>
      presented.raw.equals(expected.raw)
        ? undefined
        : new Error(`the server shows another certificate than the one in ${file}`),
  };
}
