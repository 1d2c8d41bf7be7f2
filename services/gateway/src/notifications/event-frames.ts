import type { EventsDeclaration } from "@devmesh/contracts/contract";
import { deviceEvents } from "@devmesh/contracts/devices";
import { keyEvents } from "@devmesh/contracts/keys";
import type { Json } from "@devmesh/contracts/model/json";
import type { Notification } from "@devmesh/contracts/model/notification";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { StreamedEvent } from "@devmesh/service-kit/event-stream";
import type { z } from "zod";
import { Frame } from "./frame.ts";

type FrameBody = Pick<Notification, "id" | "name" | "data" | "timestamp">;
type FramesOf<E extends EventsDeclaration> = {
  readonly [N in keyof E["events"]]?: (event: z.output<E["events"][N]["schema"]>) => FrameBody;
};

/** What each event of the mesh is in the notification stream; others are none of its frames. */
const ofDevices: FramesOf<typeof deviceEvents> = {
  online: ({ id, timestamp }) => ({ id, name: "online", data: {}, timestamp }),
  offline: ({ id, timestamp }) => ({ id, name: "offline", data: {}, timestamp }),
  created: ({ id, timestamp, device }) => ({ id, name: "created", data: device as Json, timestamp }),
  updated: ({ id, timestamp, device }) => ({ id, name: "updated", data: device as Json, timestamp }),
  deleted: ({ id, timestamp }) => ({ id, name: "deleted", data: {}, timestamp }),
  throttled: ({ id, timestamp, why, refused_ms }) => ({
    id,
    name: "throttled",
    data: { why, refused_ms },
    timestamp,
  }),
};
const ofRpc: FramesOf<typeof rpcEvents> = {
  rpc_in: ({ id, timestamp, func, params = null }) => ({
    id,
    name: `rpc.in.${func}`,
    data: params,
    timestamp,
  }),
  rpc_out: ({ id, timestamp, name, payload }) => ({ id, name: `rpc.out.${name}`, data: payload, timestamp }),
};
const ofKeys: FramesOf<typeof keyEvents> = {
  key_changed: ({ id, timestamp, change }) => ({ id, name: "keys", data: { change }, timestamp }),
  customer_changed: ({ id, timestamp, change }) => ({ id, name: "customers", data: { change }, timestamp }),
};

type Reading = (payload: unknown) => FrameBody | null;

/** Readers by `<service>.<event>`; each checks an event by its declaration. */
const readers: ReadonlyMap<string, Reading> = new Map(
  [reading(deviceEvents, ofDevices), reading(rpcEvents, ofRpc), reading(keyEvents, ofKeys)].flat(),
);

function reading<E extends EventsDeclaration>(events: E, frames: FramesOf<E>): [string, Reading][] {
  return Object.entries(frames as Readonly<Record<string, (event: never) => FrameBody>>).map(
    ([name, frameOf]) => [
      `${events.service}.${name}`,
      (payload) => {
        const parsed = events.events[name]?.schema.safeParse(payload);
        return parsed?.success ? frameOf(parsed.data as never) : null;
      },
    ],
  );
}

/** The frame of an event; null for one that is none, or cannot be read. */
export function frameOf({ sequence, service, name, payload }: StreamedEvent): Frame | null {
  const read = readers.get(`${service}.${name}`);
  if (read === undefined) return null;
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("utf8"));
  } catch {
    return null;
  }
  const body = read(json);
  return body === null ? null : new Frame({ seq: sequence, ...body });
}
