import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A way to a server that a test can take away and give back. */
export interface TcpProxy extends AsyncDisposable {
  /** Of 127.0.0.1. */
  readonly port: number;
  /** Ends all connections and refuses new ones, as a server that died does. */
  cut(): void;
  /** Keeps connections but lets nothing through any more, as a network that swallows packets does. */
  stall(): void;
  /** Lets new connections through. */
  restore(): void;
  close(): Promise<void>;
}

/** Passes connections on to a port of 127.0.0.1. */
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
      // What swallowed something once is of no use any more.
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
