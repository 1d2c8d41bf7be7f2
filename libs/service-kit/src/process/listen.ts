import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Listens; port 0 takes any free one. Resolves with `http://HOST:PORT`; rejects when the address is not available. */
export async function listen(server: Server, port: number, host: string): Promise<string> {
  await once(server.listen(port, host), "listening");
  const bound = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${bound.port}`;
}
