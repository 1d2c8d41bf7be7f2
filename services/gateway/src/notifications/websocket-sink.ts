import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { drained } from "../http/drained.ts";
import type { Outlet } from "./sink.ts";

/** A WebSocket whose handshake is done, which answers no ping by itself, and the connection below it. */
export function websocketOutlet(websocket: WebSocket, socket: Socket): Outlet {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  let alive = true;
  websocket.on("pong", () => {
    alive = true;
  });
  // One that does not read must not make answers pile up: of several pings the last may stand for all (RFC 6455,
  // 5.5.3).
  websocket.on("ping", (load) => {
    if (isOpen() && socket.writableLength === 0) websocket.pong(load);
  });
  // Clients have nothing to say: what they send is bounded by `maxPayload` and dropped.
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
      // Beside the WebSocket's own sender, which writes each frame in one piece, too.
      if (isOpen()) socket.write(bytes);
    },
    beat() {
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
