import type { ServerResponse } from "node:http";
import { drained } from "../http/drained.ts";
import type { Outlet } from "./sink.ts";

/** How long a client that was bid farewell may take to read the rest, in milliseconds. */
const farewellMs = 30_000;

/** A response whose headers are sent, as `text/event-stream` (WHATWG HTML, 9.2). `seq` is where the client stands. */
export function eventStreamOutlet(response: ServerResponse, seq: number): Outlet {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  response.once("close", () => resolve());
  // Sets the client's last event id, so that one that is cut off before the first frame comes back to here.
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
    beat() {
      if (isOpen()) response.write(":\n\n");
    },
    close({ reason }) {
      if (!isOpen()) return;
      response.end(`: ${reason}\n\n`);
      setTimeout(() => response.destroy(), farewellMs).unref();
    },
    destroy: () => void response.destroy(),
    drained: () => drained(response),
  };
}
