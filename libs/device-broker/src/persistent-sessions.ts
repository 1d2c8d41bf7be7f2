import { parseJson } from "@devmesh/contracts/model/json";
import type { Bus } from "@devmesh/service-kit/bus";
import { streamManager } from "@devmesh/service-kit/connection/streams";
import type { StoredMsg } from "@nats-io/jetstream";
import { z } from "zod";
import { mqttSessionPrefix, mqttSessionStream } from "./broker-subjects.ts";
import { deviceOfSubject } from "./device-topic.ts";

/** The broker's record of an MQTT session. It is written at each login and at each change of the subscriptions. */
export interface SessionRecord {
  readonly clientId: string;
  /** The device to whose topics it subscribes; null without subscriptions. */
  readonly subscribedDevice: string | null;
  /** Whether the session ends with its connection. */
  readonly clean: boolean;
  readonly subject: string;
  readonly sequence: number;
  readonly savedAt: Date;
  /** Subscriptions at QoS 1 and 2; one to a filter that ends in `#` is two. */
  readonly acknowledgedSubscriptions: number;
}

/** What nats-server stores of a session; members that are not needed are left out. */
const StoredSession = z.object({
  id: z.string(),
  clean: z.boolean().default(false),
  subs: z.record(z.string(), z.unknown()).default({}),
  cons: z.record(z.string(), z.unknown()).default({}),
  pubrel: z.unknown().optional(),
});

/** Records from sequence `from` on, oldest first. Each costs one request; the broker answers thousands a second. */
export async function* readSessions(
  bus: Bus,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<SessionRecord, void, undefined> {
  const manager = await streamManager(bus);
  for (let seq = from; ; seq++) {
    signal.throwIfAborted();
    const query = { seq, next_by_subj: `${mqttSessionPrefix}>` };
    const message = await manager.streams.getMessage(mqttSessionStream, query);
    if (message === null) return;
    seq = message.seq;
    const record = recordOf(message);
    if (record !== null) yield record;
  }
}

/** The record that is stored under `subject` now; null when its session has ended. */
export async function readSession(bus: Bus, subject: string): Promise<SessionRecord | null> {
  const manager = await streamManager(bus);
  const message = await manager.streams.getMessage(mqttSessionStream, { last_by_subj: subject });
  return message === null ? null : recordOf(message);
}

function recordOf(message: StoredMsg): SessionRecord | null {
  const stored = StoredSession.safeParse(parseJson(message.string()));
  if (!stored.success) return null;
  const { subs, cons, pubrel } = stored.data;
  const [filter] = Object.keys(subs);
  return {
    clientId: stored.data.id,
    subscribedDevice: filter === undefined ? null : deviceOfSubject(filter),
    clean: stored.data.clean,
    subject: message.subject,
    sequence: message.seq,
    savedAt: message.time,
    // The broker has a consumer for each, and one for releases at QoS 2.
    acknowledgedSubscriptions: Object.keys(cons).length + (pubrel === undefined ? 0 : 1),
  };
}
