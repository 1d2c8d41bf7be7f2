/** The cursor of the page that follows, out of a `Link` header with rel=next; null at the end of the list. */
export function nextCursor(headers: Headers): string | null {
  for (const link of (headers.get("Link") ?? "").split(/,\s*(?=<)/)) {
    const target = /^\s*<([^>]*)>.*;\s*rel="?next"?/.exec(link)?.[1];
    if (target !== undefined) return new URL(target, "http://localhost").searchParams.get("after");
  }
  return null;
}
