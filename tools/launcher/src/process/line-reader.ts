import type { Readable } from "node:stream";

/** Longest line that is passed on whole, in characters; a longer one is cut into pieces. */
const MAX_LINE = 64 * 1024;

/**
 * Calls `take` with each line of a stream of UTF-8 text, without its line feed. Not `node:readline`: that has no bound,
 * and breaks lines at characters such as U+2028, which a device could use to forge a line of nats-server's log.
 */
export function readLines(stream: Readable, take: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
    if (rest.length > MAX_LINE) {
      take(rest);
      rest = "";
    }
  });
  stream.on("end", () => {
    if (rest) take(rest);
  });
  // A child that ends closes its pipes in any order; its exit is reported elsewhere.
  stream.on("error", () => {});
}
