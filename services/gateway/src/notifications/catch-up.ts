import { mesh } from "@devmesh/contracts/mesh";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { replayEvents } from "@devmesh/service-kit/event-stream";
import type { Channel } from "./channel.ts";
import type { HeardEvents } from "./event-subscription.ts";
import { type Frame, gapFrame, joinFrames } from "./frame.ts";
import type { Listener } from "./listener.ts";
import type { NotificationMetrics } from "./notification-metrics.ts";
import { remembered } from "./replay-buffer.ts";
import { createTurns } from "./semaphore.ts";

/** Most listeners that read the stream of events at a time. */
const maxReplaying = 16;
/** Most events given to a listener in one piece. */
const sliceSize = 500;
/** How long a listener may take to read such a piece, in milliseconds: others may wait for their turn behind it. */
const sliceMs = 30_000;

/** What catching up works with. */
export interface CatchUpParts {
  readonly bus: Bus;
  readonly heard: HeardEvents;
  readonly clock: Clock;
  readonly metrics: NotificationMetrics;
  /** Ends the reading of the stream. */
  readonly signal: AbortSignal;
}

/**
 * Gives a listener what it missed, from memory or from the stream of events, then puts it beside those who see the
 * same: in the step in which nothing is left between. Resolves then, or when the listener has gone; rejects when the
 * past cannot be read.
 */
export type CatchUp = (listener: Listener, channel: Channel) => Promise<void>;

/** Makes the one of a gateway, whose listeners take turns at the stream of events. */
export function createCatchUp({ bus, heard, clock, metrics, signal }: CatchUpParts): CatchUp {
  const replaying = createTurns(maxReplaying);

  async function give(listener: Listener, frames: readonly Frame[]): Promise<void> {
    if (frames.length === 0) return;
    const { outlet, principal } = listener;
    listener.send(joinFrames(frames, outlet.format));
    metrics.frames.inc({ kind: principal.kind }, frames.length);
    const late = Promise.withResolvers<void>();
    const cancel = clock.schedule(sliceMs, () => {
      listener.closeAsSlow();
      late.resolve();
    });
    await Promise.race([outlet.drained(), late.promise]);
    cancel();
  }

  /** Reads events behind `after` up to `until` from the stream; answers where the listener stands then. */
  async function replay(
    listener: Listener,
    { view, audience }: Channel,
    after: number,
    until: number,
  ): Promise<number> {
    using _ = await replaying.take();
    // Gone while it waited.
    if (listener.ended) return after;
    metrics.replays.inc();
    let cursor = after;
    let moved = false;
    const about = audience.device;
    const pieces = replayEvents(bus, mesh.gateway.follows, { after, until: () => until, about, signal });
    for await (const { position, events } of pieces) {
      if (listener.ended) return cursor;
      if (position.gap) {
        await give(listener, [gapFrame(position.after, clock.now())]);
        moved = true;
      }
      if (events.length > 0) await give(listener, await view.framesOf(events.map(remembered)));
      cursor = position.after;
    }
    return moved ? cursor : Math.max(cursor, until);
  }

  return async (listener, channel) => {
    const { wishes, outlet } = listener;
    let { recent } = heard;
    let cursor = wishes.after ?? heard.position;
    // Another gateway may be ahead of this one, or the sequence be of a stream that is gone: the stream knows.
    if (cursor > heard.position) cursor = await replay(listener, channel, cursor, cursor);
    while (!listener.ended) {
      if (heard.recent !== recent) {
        recent = heard.recent;
        cursor = recent?.from ?? 0;
        await give(listener, [gapFrame(cursor, clock.now())]);
      } else if (recent === null || cursor > recent.last) {
        await Promise.race([heard.advanced, outlet.gone]);
      } else if (cursor < recent.from) {
        cursor = await replay(listener, channel, cursor, recent.from);
      } else {
        const events = recent.behind(cursor).slice(0, sliceSize);
        const last = events.at(-1);
        if (last !== undefined) {
          await give(listener, await channel.view.framesOf(events));
          cursor = last.sequence;
        } else if (channel.unsettled !== undefined) {
          await channel.unsettled;
        } else {
          channel.add(listener);
          if (wishes.data && wishes.after !== undefined) {
            // Records are told as they are stored, and kept elsewhere.
            listener.send(gapFrame(heard.position, clock.now(), ["data"]).bytes(outlet.format));
          }
          return;
        }
      }
    }
  };
}
