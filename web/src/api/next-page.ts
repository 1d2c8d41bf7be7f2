/** The cursor of the next page, from the `Link` header; null at the end of the list. */
export function nextCursor(headers: Headers): string | null {
  for (const link of (headers.get("Link") ?? "").split(/,\s*(?=<)/)) {
    const target = /^\s*<([^>]*)>.*;\s*rel="?next"?/.exec(link)?.[1];
    if (target !== undefined) return new URL(target, "http://localhost").searchParams.get("after");
  }
  return null;
}
