import type { Readable } from "node:stream";

/** Longest line that is passed on whole, in characters; a longer one is cut into pieces. */
const MAX_LINE = 64 * 1024;

/**
 * Calls `take` with the lines of a stream of UTF-8 text, without line feeds: those of a chunk together. Not
 * `node:readline`: that has no bound, and breaks lines at characters such as U+2028, which a device could use to forge
 * a line of nats-server's log.
 */
export function readLines(stream: Readable, take: (lines: readonly string[]) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE) {
      lines.push(rest);
      rest = "";
    }
    if (lines.length > 0) take(lines);
  });
  stream.on("end", () => {
    if (rest) take([rest]);
  });
  // A child that ends closes its pipes in any order; its exit is reported elsewhere.
  stream.on("error", () => {});
}
