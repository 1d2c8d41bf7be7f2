import { keyPrefixes } from "@devmesh/contracts/model/api-key";
import { ApiProblem } from "../api/api-problem.ts";

/** Names of other kinds of key, by their prefix. */
const otherKinds: Readonly<Record<string, string>> = {
  [keyPrefixes.session]: "the key of a session",
  [keyPrefixes.device_key]: "a device key",
  [keyPrefixes.customer]: "a customer key",
  [keyPrefixes.public_key]: "a device's public key",
  [keyPrefixes.device]: "a device's MQTT token",
};

/** Makes a request with a key that the user entered as a master key. Rejects with an error for the user. */
export async function withEnteredKey<T>(key: string, request: (key: string) => Promise<T>): Promise<T> {
  const kind = otherKinds[key.split("_", 1)[0] ?? ""];
  if (kind !== undefined)
    throw new Error(
      `This is ${kind}. The dashboard needs a master key; those begin with ${keyPrefixes.master}_.`,
    );
  // A header can carry no other characters.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Error("This is no key: keys hold letters, digits and _ only.");
  try {
    return await request(key);
  } catch (error) {
    const status = error instanceof ApiProblem ? error.status : null;
    if (status === 401) throw new Error("This key is not known, or it was deleted or has expired.");
    if (status === 403) throw new Error("This key is of another kind. The dashboard needs a master key.");
    throw error;
  }
}
