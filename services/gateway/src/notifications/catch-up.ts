import { mesh } from "@devmesh/contracts/mesh";
import type { Bus } from "@devmesh/service-kit/bus";
import { type Clock, withTimeout } from "@devmesh/service-kit/clock";
import { replayEvents } from "@devmesh/service-kit/events/event-stream";
import { Semaphore } from "@devmesh/service-kit/semaphore";
import type { Channel } from "./channel.ts";
import { type Frame, gapFrame, joinFrames } from "./frame.ts";
import type { Listener } from "./listener.ts";
import type { NotificationMetrics } from "./notification-metrics.ts";
import { buffered, type ReplayBuffer } from "./replay-buffer.ts";

/** Most listeners that read the stream of events at a time. */
const maxReplaying = 16;
/** Most events sent to a listener in one slice. */
const sliceSize = 500;
/** Timeout for a listener to read a slice, in milliseconds: others may wait for its slot. */
const sliceMs = 30_000;

export interface CatchUpOptions {
  readonly bus: Bus;
  readonly buffer: ReplayBuffer;
  readonly clock: Clock;
  readonly metrics: NotificationMetrics;
  /** Stops the reading of the stream. */
  readonly signal: AbortSignal;
}

/**
 * Sends a listener the events that it missed, from the buffer or from the stream, then adds it to its channel in the
 * same step in which nothing is left to send. Resolves then, or when the listener has gone; rejects when the stream
 * cannot be read.
 */
export type CatchUp = (listener: Listener, channel: Channel) => Promise<void>;

export function createCatchUp({ bus, buffer, clock, metrics, signal }: CatchUpOptions): CatchUp {
  const replaying = new Semaphore({ permits: maxReplaying });

  async function send(listener: Listener, frames: readonly Frame[]): Promise<void> {
    if (frames.length === 0) return;
    const { sink, principal } = listener;
    listener.send(joinFrames(frames, sink.format));
    metrics.frames.inc({ kind: principal.kind }, frames.length);
    if (!(await withTimeout(sliceMs, sink.drained(), clock))) listener.closeAsSlow();
  }

  /** Sends events after `after` up to `until` from the stream; returns the listener's new position. */
  async function replay(listener: Listener, { view, audience }: Channel, after: number, until: number) {
    using _ = await replaying.acquire();
    if (listener.ended) return after;
    metrics.replays.inc();
    let cursor = after;
    let moved = false;
    const about = audience.device;
    const pieces = replayEvents(bus, mesh.gateway.follows, { after, until: () => until, about, signal });
    for await (const { position, events } of pieces) {
      if (listener.ended) return cursor;
      if (position.gap) {
        await send(listener, [gapFrame(position.after, clock.now())]);
        moved = true;
      }
      if (events.length > 0) await send(listener, await view.framesOf(events.map(buffered)));
      cursor = position.after;
    }
    return moved ? cursor : Math.max(cursor, until);
  }

  return async (listener, channel) => {
    const { subscription, sink } = listener;
    let { epoch } = buffer;
    let cursor = subscription.after ?? buffer.last;
    // Another gateway may be ahead of this one, or the sequence may belong to a deleted stream: only the stream knows.
    if (cursor > buffer.last) cursor = await replay(listener, channel, cursor, cursor);
    while (!listener.ended) {
      if (buffer.epoch !== epoch) {
        epoch = buffer.epoch;
        cursor = buffer.from;
        await send(listener, [gapFrame(cursor, clock.now())]);
      } else if (cursor > buffer.last) {
        await Promise.race([buffer.advanced, sink.gone]);
      } else if (cursor < buffer.from) {
        cursor = await replay(listener, channel, cursor, buffer.from);
      } else {
        const events = buffer.after(cursor).slice(0, sliceSize);
        const last = events.at(-1);
        if (last !== undefined) {
          await send(listener, await channel.view.framesOf(events));
          cursor = last.sequence;
        } else if (channel.pending !== undefined) {
          await channel.pending;
        } else {
          channel.add(listener);
          if (subscription.data && subscription.after !== undefined) {
            // No stream keeps records: what was stored meanwhile is read by `GET /data`.
            listener.send(gapFrame(buffer.last, clock.now(), ["data"]).bytes(sink.format));
          }
          return;
        }
      }
    }
  };
}
