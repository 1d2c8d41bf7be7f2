import type { MongoClient, ServerClosedEvent } from "mongodb";

/** How often heartbeats are looked at, in milliseconds. */
const lookEveryMs = 1_000;

/** A heartbeat that has not ended, at one address. */
interface Heartbeat {
  /** Ticks until it counts as hung. Not a time, so that a suspended process blames no heartbeat. */
  looksLeft: number;
}

/**
 * Detects heartbeats that never end. The driver (7.8) waits for ever for the answer to one it wrote to a just destroyed
 * socket, and then never finds that server again (ADR 18). `onHung` is called for a hung heartbeat, and all are
 * forgotten. Returns a function that ends the watch.
 */
export function watchHeartbeats(client: MongoClient, onHung: () => void): () => void {
  const { connectTimeoutMS, heartbeatFrequencyMS } = client.options;
  const running = new Map<string, Heartbeat>();
  client.on("serverHeartbeatStarted", ({ connectionId: address, awaited }) => {
    // Connecting and the reply each have `connectTimeoutMS`; an awaited reply may come one interval later.
    const longestMs = 2 * connectTimeoutMS + (awaited ? heartbeatFrequencyMS : 0);
    running.set(address, { looksLeft: Math.ceil(longestMs / lookEveryMs) + 1 });
  });
  client.on("serverHeartbeatSucceeded", ({ connectionId: address }) => running.delete(address));
  client.on("serverHeartbeatFailed", ({ connectionId: address }) => running.delete(address));
  client.on("serverClosed", ({ address }: ServerClosedEvent) => running.delete(address));
  const looking = setInterval(() => {
    for (const heartbeat of running.values()) {
      heartbeat.looksLeft--;
      if (heartbeat.looksLeft > 0) continue;
      running.clear();
      onHung();
      return;
    }
  }, lookEveryMs);
  looking.unref();
  return () => clearInterval(looking);
}
