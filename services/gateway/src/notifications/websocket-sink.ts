import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { drained } from "../http/exchange.ts";
import type { Sink } from "./sink.ts";

/** Writes to a WebSocket after its handshake; `autoPong` of its server must be off. */
export function websocketSink(websocket: WebSocket, socket: Socket): Sink {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  let alive = true;
  websocket.on("pong", () => {
    alive = true;
  });
  // Pongs must not pile up for a client that does not read; answering only the last ping is allowed (RFC 6455, 5.5.3).
  websocket.on("ping", (load) => {
    if (isOpen() && socket.writableLength === 0) websocket.pong(load);
  });
  websocket.on("error", () => websocket.terminate());
  websocket.once("close", () => resolve());
  const isOpen = () => websocket.readyState === websocket.OPEN;
  return {
    format: "websocket",
    gone,
    get waitingBytes() {
      return socket.writableLength;
    },
    write(bytes) {
      // Frames are encoded once for all clients; the WebSocket's own sender writes whole frames as well.
      if (isOpen()) socket.write(bytes);
    },
    heartbeat() {
      if (!isOpen()) return;
      if (alive) websocket.ping();
      else websocket.terminate();
      alive = false;
    },
    close({ code, reason }) {
      if (isOpen()) websocket.close(code, reason);
    },
    destroy: () => websocket.terminate(),
    drained: () => drained(socket),
  };
}
