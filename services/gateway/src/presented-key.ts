import { RequestRefused } from "./gateway-errors.ts";

/** Longer than any key; what is longer is no key and is not looked up. */
const maxKeyLength = 512;

/**
 * The key of a request, from the `Authorization` header or the query parameter `access_token`; undefined when there
 * is none that can be read. Throws `key_ambiguous` when both are there and differ.
 */
export function presentedKey(
  authorization: string | undefined,
  accessToken: string | undefined,
): string | undefined {
  const bearer = authorization === undefined ? undefined : bearerToken(authorization);
  const token = accessToken === "" ? undefined : accessToken;
  if (authorization !== undefined && token !== undefined && bearer !== token) {
    throw new RequestRefused("key_ambiguous");
  }
  const key = bearer ?? token;
  return key === undefined || key.length > maxKeyLength ? undefined : key;
}

function bearerToken(authorization: string): string | undefined {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1];
}
