import { keyPrefixes } from "@devmesh/contracts/model/api-key";
import { createApiClient } from "../api/api-client.ts";
import { ApiProblem } from "../api/api-problem.ts";

/** Names of other kinds of key, by their prefix. */
const otherKinds: Readonly<Record<string, string>> = {
  [keyPrefixes.device_key]: "a device key",
  [keyPrefixes.customer]: "a customer key",
  [keyPrefixes.public_key]: "a device's public key",
  [keyPrefixes.device]: "a device's MQTT token",
};

/** Checks with the gateway that a key is a valid master key. Returns the error; null for none. */
export async function checkKey(key: string, origin: string, signal?: AbortSignal): Promise<string | null> {
  const kind = otherKinds[key.split("_", 1)[0] ?? ""];
  if (kind !== undefined)
    return `This is ${kind}. The dashboard needs a master key; those begin with ${keyPrefixes.master}_.`;
  // A header can carry no other characters.
  if (!/^[\x21-\x7e]+$/.test(key)) return "This is no key: keys hold letters, digits and _ only.";
  try {
    const api = createApiClient({ origin, key });
    await api.call("listDevices", { query: { limit: 1 }, ...(signal && { signal }) });
    return null;
  } catch (error) {
    if (!(error instanceof ApiProblem)) return error instanceof Error ? error.message : String(error);
    if (error.status === 401) return "This key is not known, or it was deleted or has expired.";
    if (error.status === 403) return "This key is of another kind. The dashboard needs a master key.";
    return error.message;
  }
}
