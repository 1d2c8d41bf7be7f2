import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Context } from "@devmesh/service-kit/rpc/context";
import type { DevicesClient } from "../devices-client.ts";
import type { CallLine, DeviceLink } from "./device-link.ts";
import type { CallOutcome } from "./in-flight-calls.ts";

/** The context of a call. */
export type CallMethod = Context<typeof rpcBridge, "call">;

/**
 * Devices that are online as far as this process knows: `devices` has confirmed it, and no event since says otherwise.
 * A call to one that has just left has no subscriber, which the broker reports; then `devices` is asked again.
 */
export type OnlineDevices = Pick<Set<string>, "has" | "add" | "delete">;

interface CallDeliveryOptions {
  readonly devices: Pick<DevicesClient, "readPresence" | "readConnections">;
  readonly online: OnlineDevices;
  readonly link: Pick<DeviceLink, "awaitConnection">;
  readonly clock: Clock;
}

/**
 * When the nats-servers are asked about a device that is online to `devices` and does not subscribe, in milliseconds:
 * it moves to another one within a second, and the one that it leaves may report no disconnect (ADR 27).
 */
const askAfterMs = 500;
const askEveryMs = 1_000;

/** Listings in a row that must miss a device before it counts as gone: a busy nats-server may be missing from one. */
const missesUntilGone = 2;

/** Waits before a frame is sent again, in milliseconds, doubled from the first. */
const firstPauseMs = 50;
const longestPauseMs = 500;

/** Delivers calls to devices that are moving from one nats-server to another. */
export function createCallDelivery({ devices, online, link, clock }: CallDeliveryOptions) {
  /** By device: calls share a listing, which asks each nats-server. */
  const listings = new Map<string, Promise<boolean>>();

  async function readPresence(id: string, context: CallMethod): Promise<boolean> {
    const isOnline = (await devices.readPresence({ id }, context)).online;
    if (isOnline) online.add(id);
    return isOnline;
  }

  /** Asks the nats-servers; true when they cannot be asked. */
  function isConnected(id: string, context: CallMethod): Promise<boolean> {
    const known = listings.get(id);
    if (known !== undefined) return known;
    const listing = devices
      .readConnections({ id }, context)
      .then(({ client_ids }) => client_ids.length > 0)
      .catch(() => true)
      .finally(() => listings.delete(id));
    listings.set(id, listing);
    return listing;
  }

  /** Asks `devices` only about a device that is not known to be online. Null if it is, else how the call ends. */
  async function unlessOnline(
    id: string,
    outcome: Promise<CallOutcome>,
    context: CallMethod,
  ): Promise<CallOutcome | null> {
    if (online.has(id)) return null;
    // The call's timeout also bounds the wait for `devices`.
    const answer = await Promise.race([readPresence(id, context), outcome]);
    if (answer === true) return null;
    return answer === false ? { kind: "offline" } : answer;
  }

  /**
   * Sends a frame that nobody received again until a client of the device receives it: a call runs at most once. Ends
   * as `offline` when the device has no connection and does not return.
   */
  async function sendAgain(
    id: string,
    send: CallLine["send"],
    frame: Buffer,
    outcome: Promise<CallOutcome>,
    context: CallMethod,
  ): Promise<CallOutcome> {
    let askAtMs = clock.monotonicMs() + askAfterMs;
    let misses = 0;
    let isAsking = false;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      online.delete(id);
      const ended = await unlessOnline(id, outcome, context);
      if (ended !== null) return ended;
      if (misses >= missesUntilGone) return { kind: "offline" };
      if (!isAsking && clock.monotonicMs() > askAtMs) {
        isAsking = true;
        void isConnected(id, context).then((isListed) => {
          isAsking = false;
          askAtMs = clock.monotonicMs() + askEveryMs;
          // One that is connected may still subscribe.
          misses = isListed ? 0 : misses + 1;
        });
      }
      const early = await Promise.race([outcome, clock.sleep(pauseMs, context.signal)]);
      if (early !== undefined) return early;
      await link.awaitConnection(context.signal);
      const undelivered = send(frame) ?? context.fail("broker_unreachable");
      const later = await Promise.race([outcome, undelivered]);
      if (later !== null) return later;
    }
  }

  return { unlessOnline, sendAgain };
}
