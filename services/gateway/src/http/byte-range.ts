import { namesTag } from "./conditional.ts";
import { RequestRefused } from "./gateway-errors.ts";

/** A file as a range is asked of it; `etag` is a strong one, quoted. */
interface RangedFile {
  readonly etag: string;
  readonly size: number;
}

/** A part of a file: the bytes from `start` to before `end`. */
export interface BytePart {
  readonly start: number;
  readonly end: number;
  /** Status and headers of the answer. */
  readonly status: 200 | 206;
  readonly headers: Readonly<Record<string, string>>;
}

interface RangeRequest {
  readonly method: string;
  readonly header: (name: string) => string | undefined;
}

/**
 * The part of a file that a request asks for (RFC 9110, 14). Several ranges, an unknown unit and a range that is not
 * well-formed are answered with the whole. Throws `range_not_satisfiable` for one that begins after the end.
 */
export function partOf({ method, header }: RangeRequest, { etag, size }: RangedFile): BytePart {
  const ifRange = header("if-range");
  const isCurrent = ifRange === undefined || ifRange === etag;
  // Whether the client has the file counts before what it asks of it (RFC 9110, 13.2.2).
  const isSent = isCurrent && !namesTag(header("if-none-match"), etag);
  const asked = method === "GET" && isSent ? askedRange(header("range"), size) : null;
  const { start, end } = asked ?? { start: 0, end: size };
  if (start >= end)
    throw new RequestRefused("range_not_satisfiable", { headers: { "Content-Range": `bytes */${size}` } });
  const headers = { ETag: etag, "Accept-Ranges": "bytes", "Content-Length": String(end - start) };
  if (asked === null) return { start, end, status: 200, headers };
  return {
    start,
    end,
    status: 206,
    headers: { ...headers, "Content-Range": `bytes ${start}-${end - 1}/${size}` },
  };
}

/** The asked part, empty where the file has none of it; null for the whole. */
function askedRange(range: string | undefined, size: number): { start: number; end: number } | null {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/i.exec(range ?? "") ?? [];
  if (first === "" && last === "") return null;
  if (first === "") return { start: Math.max(0, size - Number(last)), end: size };
  if (last !== "" && Number(last) < Number(first)) return null;
  return { start: Number(first), end: last === "" ? size : Math.min(Number(last) + 1, size) };
}
