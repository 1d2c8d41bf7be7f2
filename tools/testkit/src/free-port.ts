import { createServer } from "node:net";
import { accepts } from "@devmesh/supervisor/mesh/broker-process";

const handedOut = new Set<number>();

/** Below the range of ports for outgoing connections on Linux and macOS. */
const LOWEST = 12_000;
const HIGHEST = 32_000;

/** A TCP port of 127.0.0.1 that nothing listens on and that this process has not handed out before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if (handedOut.has(port) || !(await isFree(port))) continue;
    handedOut.add(port);
    return port;
  }
}

/** How often something is started on other ports. */
const starts = 3;

/** Starts something on free ports, on others where another process has taken one before it could. */
export async function onFreePorts<T>(start: () => Promise<T>): Promise<T> {
  for (let nth = 1; ; nth++) {
    try {
      return await start();
    } catch (error) {
      if (nth === starts || !String(error).includes("address already in use")) throw error;
    }
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** Whether something accepts TCP connections on this port. */
export function isListening(port: number, host = "127.0.0.1"): Promise<boolean> {
  return accepts({ host, port });
}
