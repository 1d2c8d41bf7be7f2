import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { OpenDeviceConnection } from "@devmesh/device-broker/connections";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import type { BrokerConnections } from "./broker-connections.ts";

/** Options of closing the connections of a device. */
export interface ClosingOptions {
  readonly clock: Clock;
  readonly connections: Pick<BrokerConnections, "list" | "close">;
  readonly rpcBridge: Pick<Client<typeof rpcBridge>, "endSessions">;
}

/** Whether to close a connection of a listing that was asked for at `askedMs` (monotonic). */
export type IsOld = (connection: OpenDeviceConnection, askedMs: number) => boolean;

/**
 * Decides which connections were accepted before a change at `changedMs` (monotonic). Servers have other clocks: at a
 * listing, the change is past by at least the time since. Each listing narrows down when that was, so one decision
 * serves all listings after a change.
 */
export function acceptedBefore(changedMs: number): IsOld {
  /** The latest time that the change can have, by the clock of each server. */
  const latest = new Map<string, number>();
  return ({ serverId, acceptedMs, listedMs }, askedMs) => {
    const known = latest.get(serverId) ?? Number.POSITIVE_INFINITY;
    const changed = Math.min(known, listedMs - (askedMs - changedMs));
    latest.set(serverId, changed);
    return acceptedMs <= changed;
  };
}

/**
 * Closes the connections that a device has now, or the old ones of them. The bridge takes their sessions over, since
 * the broker publishes the will of a connection that it closes on request.
 */
export async function closeConnections(
  { connections, rpcBridge, clock }: ClosingOptions,
  deviceId: string,
  call: CallContext,
  isOld: IsOld = () => true,
): Promise<void> {
  const askedMs = clock.monotonicMs();
  const listed = await connections.list(call, deviceId);
  const old = listed.connections.filter((connection) => isOld(connection, askedMs));
  if (old.length === 0) return;
  const client_ids = old.map(({ mqttClientId }) => mqttClientId);
  try {
    await rpcBridge.endSessions({ device_id: deviceId, client_ids }, call);
  } catch {
    // Access has to end even though wills are published now.
    await Promise.all(old.map((connection) => connections.close(connection, call)));
  }
}

/**
 * Milliseconds after which connections are closed a second time: a login that was being checked when the device lost
 * its access may succeed after the first time.
 */
export const closeAgainAfterMs = 6_000;
