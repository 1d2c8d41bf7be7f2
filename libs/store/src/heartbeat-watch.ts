import type { MongoClient, ServerClosedEvent } from "mongodb";

/** How often heartbeats are looked at, in milliseconds. */
const lookEveryMs = 1_000;

/** A heartbeat that has not ended, at one address. */
interface Heartbeat {
  /**
   * After so many more looks it counts as hung. Not a time, so that a process that was stopped for a while blames no
   * heartbeat.
   */
  looksLeft: number;
}

/**
 * Looks whether each heartbeat of a client ends, well or not, as the driver itself means it to. The driver (7.8)
 * waits for ever for the answer to one that it wrote to a socket which had just been destroyed, as happens when a
 * server dies and all connections to it end in one turn of the event loop; it then never finds that server again (ADR
 * 18). @param onHung is called once for a hung heartbeat; all others are forgotten with it. @returns a function that
 * ends the watch.
 */
export function watchHeartbeats(client: MongoClient, onHung: () => void): () => void {
  const { connectTimeoutMS, heartbeatFrequencyMS } = client.options;
  const running = new Map<string, Heartbeat>();
  client.on("serverHeartbeatStarted", ({ connectionId: address, awaited }) => {
    // To connect and then to be answered, each within `connectTimeoutMS`; an answer that is awaited may come a beat
    // later.
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
