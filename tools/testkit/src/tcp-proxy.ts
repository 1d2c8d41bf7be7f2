import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy that a test can interrupt. */
export interface TcpProxy extends AsyncDisposable {
  /** Of 127.0.0.1. */
  readonly port: number;
  /** Closes all connections and refuses new ones, like a dead server. */
  cut(): void;
  /** Keeps connections but drops their data, like a broken network. */
  stall(): void;
  /** Lets new connections through. */
  restore(): void;
  close(): Promise<void>;
}

/** Starts a proxy of a port of 127.0.0.1. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const mute = new WeakSet<Socket>();
  let state: "open" | "cut" | "stalled" = "open";
  const server = createServer((client) => {
    if (state === "cut") {
      client.destroy();
      return;
    }
    const target = connect(targetPort, "127.0.0.1");
    for (const socket of [client, target]) {
      socket.setNoDelay(true);
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        target.destroy();
      });
    }
    const pass = (to: Socket) => (bytes: Buffer) => {
      // A connection that lost data stays silent.
      if (state === "stalled") mute.add(client);
      if (!mute.has(client)) to.write(bytes);
    };
    client.on("data", pass(target));
    target.on("data", pass(client));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const endAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  async function close() {
    server.close();
    endAll();
    await once(server, "close");
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      state = "cut";
      endAll();
    },
    stall() {
      state = "stalled";
    },
    restore() {
      if (state === "stalled") endAll();
      state = "open";
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
