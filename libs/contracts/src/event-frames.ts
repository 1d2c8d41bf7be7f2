import type { z } from "zod";
import { alertEvents } from "./alerts.ts";
import type { EventsDeclaration } from "./contract.ts";
import { deviceEvents } from "./devices.ts";
import { jobEvents } from "./jobs.ts";
import { keyEvents } from "./keys.ts";
import { redactSecrets } from "./model/api-key.ts";
import { diagnosisFrames } from "./model/diagnostics.ts";
import type { Json } from "./model/json.ts";
import type { Notification } from "./model/notification.ts";
import { rpcEvents } from "./rpc-bridge.ts";
import { webhookEvents } from "./webhooks.ts";

/** An event as its stream keeps it. */
export interface EventText {
  /** Sequence in the stream. */
  readonly sequence: number;
  readonly service: string;
  readonly name: string;
  /** JSON, by the schema of the event's declaration; not checked yet. */
  readonly text: string;
}

/** Name and data of a frame; it has the id and the timestamp of the event. */
type NameAndData = readonly [name: string, data: Json];
type FramesOf<E extends EventsDeclaration> = {
  readonly [N in keyof E["events"]]?: {
    /** Names of the frames; one that ends with `*` is any with that beginning. */
    readonly names: readonly string[];
    readonly frame: (event: z.output<E["events"][N]["schema"]>) => NameAndData;
  };
};

interface EventFrame {
  readonly service: string;
  readonly event: string;
  readonly names: readonly string[];
  readonly read: (event: EventText) => Notification | null;
}

const { entries } = Object;

const eventFrames: readonly EventFrame[] = [
  ...framesOf(deviceEvents, {
    online: { names: ["online"], frame: () => ["online", {}] },
    offline: { names: ["offline"], frame: () => ["offline", {}] },
    created: { names: ["created"], frame: (event) => ["created", wholeDevice(event)] },
    updated: { names: ["updated"], frame: (event) => ["updated", wholeDevice(event)] },
    deleted: { names: ["deleted"], frame: () => ["deleted", {}] },
    throttled: { names: ["throttled"], frame: ({ why, refused_ms }) => ["throttled", { why, refused_ms }] },
    diagnosed: {
      names: diagnosisFrames,
      frame: ({ id: _, timestamp: __, name, ...diagnosis }) => [name, diagnosis],
    },
  }),
  // A call may write a device's token into it, and no event holds a secret.
  ...framesOf(
    rpcEvents,
    {
      rpc_in: { names: ["rpc.in.*"], frame: ({ func, params = null }) => [`rpc.in.${func}`, params] },
      rpc_out: { names: ["rpc.out.*"], frame: ({ name, payload }) => [`rpc.out.${name}`, payload] },
    },
    redactSecrets,
  ),
  ...framesOf(
    jobEvents,
    {
      execution_changed: {
        names: ["execution"],
        frame: ({ execution }) => ["execution", execution as Json],
      },
      job_changed: { names: ["job"], frame: ({ job }) => ["job", job as Json] },
    },
    redactSecrets,
  ),
  // A device may publish its token as a value.
  ...framesOf(
    alertEvents,
    { alert_changed: { names: ["alert"], frame: ({ alert }) => ["alert", alert as Json] } },
    redactSecrets,
  ),
  ...framesOf(keyEvents, {
    key_changed: { names: ["keys"], frame: ({ change }) => ["keys", { change }] },
    customer_changed: { names: ["customers"], frame: ({ change }) => ["customers", { change }] },
  }),
  ...framesOf(webhookEvents, {
    webhook_changed: { names: ["webhooks"], frame: ({ change }) => ["webhooks", { change }] },
  }),
];

function wholeDevice({
  device,
  acl = device.acl,
}: z.output<typeof deviceEvents.events.updated.schema>): Json {
  return { ...device, acl } as Json;
}

const byEvent = new Map(eventFrames.map((one) => [`${one.service}.${one.event}`, one]));

function framesOf<E extends EventsDeclaration>(
  { service, events }: E,
  frames: FramesOf<E>,
  prepare: (text: string) => string = (text) => text,
): EventFrame[] {
  type Frame = { readonly names: readonly string[]; readonly frame: (event: never) => NameAndData };
  return entries(frames as Readonly<Record<string, Frame>>).map(([event, { names, frame }]) => ({
    service,
    event,
    names,
    read({ sequence, text }) {
      const parsed = events[event]?.schema.safeParse(JSON.parse(prepare(text)));
      if (!parsed?.success) return null;
      const [name, data] = frame(parsed.data as never);
      const { id, timestamp } = parsed.data as { readonly id: string; readonly timestamp: string };
      return { seq: sequence, id, name, data, timestamp };
    },
  }));
}

/** The frame of an event; null for one that is no frame or cannot be read. */
export function frameOfEvent(event: EventText): Notification | null {
  try {
    return byEvent.get(`${event.service}.${event.name}`)?.read(event) ?? null;
  } catch {
    return null;
  }
}

/** The events that frames are made of: those of one name (`rpc.in.*` and `rpc.in.NAME` are one event), or all. */
export function eventsOfFrames(name?: string): readonly Pick<EventFrame, "service" | "event">[] {
  return eventFrames.filter(
    ({ names }) =>
      name === undefined ||
      names.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : name === one)),
  );
}

/** Whether a frame is about the account rather than a device. */
export function isAccountFrame(name: string): boolean {
  return name === "keys" || name === "customers" || name === "webhooks";
}
