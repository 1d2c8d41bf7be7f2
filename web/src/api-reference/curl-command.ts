import type { TriedRequest } from "./tried-request.ts";

/** The request as a command for a shell, which has the key in `DEVMESH_KEY`. */
export function curlCommand(
  { method, address, headers, body, needsKey }: TriedRequest,
  origin: string,
): string {
  const streamed = headers.Accept === "text/event-stream";
  const parts = [
    `curl -sS${streamed ? "N" : ""}${method === "GET" ? "" : ` -X ${method}`} ${quoted(origin + address)}`,
    ...(needsKey ? ['-H "Authorization: Bearer $DEVMESH_KEY"'] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === null ? [] : [`--data-raw ${quoted(body)}`]),
  ];
  return parts.join(" \\\n  ");
}

/** A text that no shell expands. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
