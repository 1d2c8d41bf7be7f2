import type { ServerResponse } from "node:http";
import { drained } from "../http/exchange.ts";
import type { Sink } from "./sink.ts";

/** Timeout for a client to read the rest of a closed stream, in milliseconds. */
const closeMs = 30_000;

/** Writes `text/event-stream` (WHATWG HTML, 9.2) to a response whose headers are sent. */
export function eventStreamSink(response: ServerResponse, seq: number): Sink {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  response.once("close", () => resolve());
  // Sets the client's last event id, so that one that is cut off before the first frame resumes here.
  response.write(`id: ${seq}\n\n`);
  const isOpen = () => !response.writableEnded && !response.destroyed;
  return {
    format: "event_stream",
    gone,
    get waitingBytes() {
      return response.writableLength;
    },
    write(bytes) {
      if (isOpen()) response.write(bytes);
    },
    heartbeat() {
      if (isOpen()) response.write(":\n\n");
    },
    close({ reason }) {
      if (!isOpen()) return;
      response.end(`: ${reason}\n\n`);
      setTimeout(() => response.destroy(), closeMs).unref();
    },
    destroy: () => void response.destroy(),
    drained: () => drained(response),
  };
}
