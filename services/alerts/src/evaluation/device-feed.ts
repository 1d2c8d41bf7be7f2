import { deviceEvents } from "@devmesh/contracts/devices";
import { eventsOfFrames, frameOfEvent } from "@devmesh/contracts/event-frames";
import type { Notification } from "@devmesh/contracts/model/notification";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { EventSubscription } from "@devmesh/contracts/topology";
import type {
  EventFollower,
  ReplayOptions,
  StreamedEvent,
  StreamPosition,
} from "@devmesh/service-kit/events/event-stream";

/** What the broker keeps of events. */
export interface EventSource {
  follow(
    subscriptions: readonly EventSubscription[],
    follower: EventFollower,
    signal: AbortSignal,
  ): Promise<void>;
  replay(
    subscriptions: readonly EventSubscription[],
    options: ReplayOptions,
  ): AsyncIterable<{ readonly position: StreamPosition; readonly events: readonly StreamedEvent[] }>;
}

/** A frame about a device, with its sequence in the stream of events. */
export interface DeviceFrame extends Omit<Notification, "id"> {
  readonly id: string;
}

export interface DeviceFeedOptions {
  readonly source: EventSource;
  /** Is given each frame that follows the beginning, at once. */
  readonly take: (frame: DeviceFrame) => void;
  /** Frames may be missing, as before the first one. */
  readonly onBegin: (position: StreamPosition) => void;
  readonly onFailure: (error: unknown) => void;
  readonly signal: AbortSignal;
}

/** Events that frames of these names are made of. */
export function subscriptionsOf(names: readonly string[]): EventSubscription[] {
  const wanted = new Set(names.flatMap((name) => eventsOfFrames(name)));
  return [deviceEvents, rpcEvents].flatMap((events): EventSubscription[] => {
    const own = [...wanted].filter(({ service }) => service === events.service).map(({ event }) => event);
    return own.length === 0 ? [] : [{ events, names: own } as EventSubscription];
  });
}

/** The frame of an event about a device; null for another one. */
export function deviceFrameOf({ sequence, service, name, payload }: StreamedEvent): DeviceFrame | null {
  const frame = frameOfEvent({ sequence, service, name, text: Buffer.from(payload).toString() });
  return frame?.id === null || frame === null ? null : { ...frame, id: frame.id };
}

/** Follows frames about devices, in the replica that evaluates. */
export function createDeviceFeed({ source, take, onBegin, onFailure, signal }: DeviceFeedOptions) {
  let names = "";
  let following = new AbortController();

  return {
    /** Follows frames of these names; with others than before it begins again. None ends it. */
    follow(wanted: readonly string[]): void {
      const key = [...new Set(wanted)].sort().join();
      if (key === names) return;
      names = key;
      following.abort(new Error("other frames are followed"));
      following = new AbortController();
      if (key === "") return;
      const own = AbortSignal.any([signal, following.signal]);
      const follower: EventFollower = {
        began: onBegin,
        events(batch) {
          for (const event of batch) {
            const frame = deviceFrameOf(event);
            if (frame !== null) take(frame);
          }
        },
      };
      source.follow(subscriptionsOf(wanted), follower, own).catch((error: unknown) => {
        if (own.aborted) return;
        names = "";
        onFailure(error);
      });
    },
  };
}
