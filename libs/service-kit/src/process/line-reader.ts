import type { Readable } from "node:stream";

/** Longest line that is passed on whole, in characters. Of a longer one the begin is passed on. */
const MAX_LINE = 64 * 1024;

/**
 * Calls `take` with the lines of a stream of UTF-8 text, without line feeds: those of a chunk together. Not
 * `node:readline`: that has no bound, and breaks lines at characters such as U+2028, which a device could use to forge
 * a line of nats-server's log.
 */
export function readLines(stream: Readable, take: (lines: readonly string[]) => void): void {
  let rest = "";
  /** Whether the begin of the line was passed on. A stranger may have sent the rest, which must not pass for a line. */
  let isCut = false;
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    if (isCut && lines.length > 0) {
      lines.shift();
      isCut = false;
    }
    if (isCut) rest = "";
    if (rest.length > MAX_LINE) {
      lines.push(rest);
      rest = "";
      isCut = true;
    }
    if (lines.length > 0) take(lines);
  });
  stream.on("end", () => {
    if (rest) take([rest]);
  });
  // A child that ends closes its pipes in any order; its exit is reported elsewhere.
  stream.on("error", () => {});
}
