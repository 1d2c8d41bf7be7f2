import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/** The connection of a request that asks for a WebSocket. */
export interface Upgrade {
  readonly socket: Socket;
  /** What came behind the request already. */
  readonly head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** Keeps the connection for the route that takes it over. */
export function keepUpgrade(request: IncomingMessage, upgrade: Upgrade): void {
  upgrades.set(request, upgrade);
}

/** The connection of a request that asks for a WebSocket; undefined for any other request. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}
