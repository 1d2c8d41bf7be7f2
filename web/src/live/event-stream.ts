import { createParser } from "eventsource-parser";
import type { ZodType } from "zod";

/** One message of a `text/event-stream`. */
export interface ServerEvent {
  /** `message` unless the stream names another. */
  readonly event: string;
  readonly data: string;
}

/** Maximum size of unparsed text, in characters; a stream with more of it is cut. */
const maxBufferSize = 4 * 1024 * 1024;

/** Reads a `text/event-stream` to its end. Yields null for comments, which the server sends as heartbeats. */
export async function* readEventStream(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<ServerEvent | null, void, undefined> {
  const parsed: (ServerEvent | null)[] = [];
  const parser = createParser({
    maxBufferSize,
    onEvent: ({ event = "message", data }) => parsed.push({ event, data }),
    onComment: () => parsed.push(null),
    onError(error) {
      if (error.type === "max-buffer-size-exceeded") throw error;
    },
  });
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(value);
      yield* parsed.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** The JSON of an event by a schema; null for other data: a later release may send more than this one knows. */
export function parsedEvent<T>(schema: ZodType<T>, data: string): T | null {
  try {
    return schema.parse(JSON.parse(data));
  } catch {
    return null;
  }
}
