import type { TriedAnswer } from "./send-request.ts";

/** Headers that tell something of how the API is used, in the order in which they are shown. */
const telling = [
  "Content-Type",
  "Location",
  "ETag",
  "Link",
  "Allow",
  "WWW-Authenticate",
  "RateLimit",
  "RateLimit-Policy",
  "Retry-After",
  "X-Request-Id",
] as const;

/** The headers of an answer that are worth showing. */
export function tellingHeaders(headers: Headers): { readonly name: string; readonly value: string }[] {
  return telling.flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [{ name, value }];
  });
}

/** The body of an answer: JSON indented, unless it was cut or goes on; all else as it is. */
export function readableBody({ headers, body, cut, ended }: Omit<TriedAnswer, "tookMs">): string {
  const type = headers.get("Content-Type") ?? "";
  if (cut || !ended || !/^application\/([\w.-]+\+)?json\b/.test(type)) return body;
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
