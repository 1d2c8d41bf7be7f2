import type { IncomingMessage } from "node:http";
import { RequestRefused } from "../http/gateway-errors.ts";

/** Longer than any key. */
const maxKeyLength = 512;

/**
 * The key from the `Authorization` header or the query parameter `access_token`; undefined without a well-formed one.
 * Throws `key_ambiguous` when there are several that differ.
 */
export function presentedKey(
  request: Pick<IncomingMessage, "headers" | "rawHeaders">,
  accessToken: string | undefined,
): string | undefined {
  const { authorization } = request.headers;
  if (authorization !== undefined && differsFromOther(authorization, request.rawHeaders)) {
    throw new RequestRefused("key_ambiguous");
  }
  const bearer = authorization === undefined ? undefined : bearerToken(authorization);
  const token = accessToken === "" ? undefined : accessToken;
  if (authorization !== undefined && token !== undefined && bearer !== token) {
    throw new RequestRefused("key_ambiguous");
  }
  const key = bearer ?? token;
  return key === undefined || key.length > maxKeyLength ? undefined : key;
}

/** Whether another `Authorization` header has another value; Node shows only the first. */
function differsFromOther(first: string, rawHeaders: readonly string[]): boolean {
  return rawHeaders.some(
    (name, at) =>
      at % 2 === 0 &&
      name.length === "authorization".length &&
      name.toLowerCase() === "authorization" &&
      rawHeaders[at + 1]?.trim() !== first,
  );
}

function bearerToken(authorization: string): string | undefined {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1];
}
