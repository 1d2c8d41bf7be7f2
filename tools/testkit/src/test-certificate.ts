import { readFileSync } from "node:fs";

// Everybody knows these private keys: they must guard nothing.
const pem = (file: string) => readFileSync(new URL(`./certificates/${file}`, import.meta.url), "utf8");

/** A self-signed certificate for `localhost` and 127.0.0.1, with its key. */
export const testCertificate = { cert: pem("localhost.crt"), key: pem("localhost.key") };

/** A certificate for `mqtt.example.com` alone, of an unknown authority, with its key. */
export const foreignCertificate = { cert: pem("foreign.crt"), key: pem("foreign.key") };

/**
 * A certificate for `localhost`, 127.0.0.1 and Kubernetes' API server (`kubernetes.default.svc`), with its key and the
 * certificate of its authority, whose key is lost.
 */
export const authorisedCertificate = {
  authority: pem("authorised.authority.crt"),
  cert: pem("authorised.crt"),
  key: pem("authorised.key"),
};
