import type { Request } from "express";
import type { Reply } from "./exchange.ts";

/** A file that is held in memory, with forms of it that take less bytes. */
export interface EncodedFile {
  readonly type: string;
  readonly identity: Buffer;
  /** By content encoding, the preferred one first. */
  readonly encoded: ReadonlyMap<string, Buffer>;
}

/** Answers with the first form of a file that the client accepts. */
export function fileReply(
  request: Request,
  { type, identity, encoded }: EncodedFile,
  caching: string,
): Reply {
  const headers = { "Content-Type": type, "Cache-Control": caching, Vary: "Accept-Encoding" };
  for (const [encoding, body] of encoded) {
    if (request.acceptsEncodings(encoding))
      return { status: 200, headers: { ...headers, "Content-Encoding": encoding }, body };
  }
  return { status: 200, headers, body: identity };
}
