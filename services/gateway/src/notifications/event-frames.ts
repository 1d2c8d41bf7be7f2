import type { EventsDeclaration } from "@devmesh/contracts/contract";
import { deviceEvents } from "@devmesh/contracts/devices";
import { jobEvents } from "@devmesh/contracts/jobs";
import { keyEvents } from "@devmesh/contracts/keys";
import { redactSecrets } from "@devmesh/contracts/model/api-key";
import type { Json } from "@devmesh/contracts/model/json";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { StreamedEvent } from "@devmesh/service-kit/events/event-stream";
import type { z } from "zod";
import { Frame } from "./frame.ts";

/** Name and data of a frame; it has the id and the timestamp of the event. */
type NameAndData = readonly [name: string, data: Json];
type FramesOf<E extends EventsDeclaration> = {
  readonly [N in keyof E["events"]]?: (event: z.output<E["events"][N]["schema"]>) => NameAndData;
};
type ReadEvent = (event: StreamedEvent) => Frame | null;

/** By `<service>.<event>`; an event that is not listed is no frame. */
const readers: ReadonlyMap<string, ReadEvent> = new Map([
  ...readersOf(deviceEvents, {
    online: () => ["online", {}],
    offline: () => ["offline", {}],
    created: ({ device }) => ["created", device as Json],
    updated: ({ device }) => ["updated", device as Json],
    deleted: () => ["deleted", {}],
    throttled: ({ why, refused_ms }) => ["throttled", { why, refused_ms }],
    diagnosed: ({ id: _, timestamp: __, name, ...diagnosis }) => [name, diagnosis],
  }),
  // A call may write a device's token into it, and no event holds a secret.
  ...readersOf(
    rpcEvents,
    {
      rpc_in: ({ func, params = null }) => [`rpc.in.${func}`, params],
      rpc_out: ({ name, payload }) => [`rpc.out.${name}`, payload],
    },
    redactSecrets,
  ),
  ...readersOf(
    jobEvents,
    {
      execution_changed: ({ execution }) => ["execution", execution as Json],
      job_changed: ({ job }) => ["job", job as Json],
    },
    redactSecrets,
  ),
  ...readersOf(keyEvents, {
    key_changed: ({ change }) => ["keys", { change }],
    customer_changed: ({ change }) => ["customers", { change }],
  }),
]);

function readersOf<E extends EventsDeclaration>(
  declaration: E,
  frames: FramesOf<E>,
  prepare: (text: string) => string = (text) => text,
): [string, ReadEvent][] {
  return Object.entries(frames as Readonly<Record<string, (event: never) => NameAndData>>).map(
    ([event, frameOf]) => [
      `${declaration.service}.${event}`,
      ({ sequence, payload }) => {
        const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("utf8");
        const json = JSON.parse(prepare(text));
        const parsed = declaration.events[event]?.schema.safeParse(json);
        if (!parsed?.success) return null;
        const [name, data] = frameOf(parsed.data as never);
        const { id, timestamp } = parsed.data as { readonly id: string; readonly timestamp: string };
        return new Frame({ seq: sequence, id, name, data, timestamp });
      },
    ],
  );
}

/** The frame of an event; null for one that is no frame or cannot be read. */
export function frameOf(event: StreamedEvent): Frame | null {
  try {
    return readers.get(`${event.service}.${event.name}`)?.(event) ?? null;
  } catch {
    return null;
  }
}
