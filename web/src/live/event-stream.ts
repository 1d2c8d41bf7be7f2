/** One message of a `text/event-stream`. */
export interface ServerEvent {
  /** The last id that the stream has told; empty before the first. */
  readonly id: string;
  /** `message` where the stream names none. */
  readonly event: string;
  readonly data: string;
}

/** Longest line or message that is held, in characters; a stream that exceeds it is broken off. */
const maxHeld = 4 * 1024 * 1024;

/**
 * Reads a `text/event-stream` (HTML standard, 9.2) to its end. Yields null for a comment, which is how the server
 * shows that it is alive.
 */
export async function* readEventStream(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<ServerEvent | null, void, undefined> {
  let id = "";
  let event = "";
  let data: string[] = [];
  for await (const line of linesOf(body)) {
    if (line === "") {
      if (data.length > 0) yield { id, event: event || "message", data: data.join("\n") };
      event = "";
      data = [];
      continue;
    }
    if (line.startsWith(":")) {
      yield null;
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") event = value;
    else if (field === "id" && !value.includes("\0")) id = value;
  }
}

/** Lines ended by CR, LF or both; an unfinished last one is dropped, as the standard has it. */
async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      // A CR at the end may be the first half of CR LF.
      const ended = rest.endsWith("\r") ? rest.slice(0, -1) : rest;
      const lines = ended.split(/\r\n|\r|\n/);
      rest = (lines.pop() ?? "") + rest.slice(ended.length);
      if (rest.length > maxHeld) throw new RangeError("a line of the event stream is too long");
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
