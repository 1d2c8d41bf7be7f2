import { z } from "zod";
import type { Bus } from "./bus.ts";
import { streamManager } from "./streams.ts";
import { mqttSessionPrefix, mqttSessionStream } from "./subjects.ts";

/** An MQTT session that the broker keeps while nobody is connected by its client id. */
export interface KeptSession {
  readonly clientId: string;
  /** Whose topics it subscribed to: the first level of them. */
  readonly deviceId: string;
}

/** What nats-server's record of a session says; members that are not ours are left out. */
const SessionRecord = z.object({
  id: z.string(),
  clean: z.boolean().default(false),
  subs: z.record(z.string(), z.unknown()).default({}),
});

/**
 * All kept sessions with subscriptions, that whose subscriptions changed longest ago first. The broker is asked for one after the
 * other, some thousands a second: not for every day.
 */
export async function listKeptSessions(bus: Bus, signal: AbortSignal): Promise<readonly KeptSession[]> {
  const manager = await streamManager(bus);
  const sessions: KeptSession[] = [];
  for (let seq = 1; ; seq++) {
    signal.throwIfAborted();
    const query = { seq, next_by_subj: `${mqttSessionPrefix}>` };
    const message = await manager.streams.getMessage(mqttSessionStream, query);
    if (message === null) return sessions;
    seq = message.seq;
    const record = SessionRecord.safeParse(readJson(message.string()));
    if (!record.success || record.data.clean) continue;
    const [subject] = Object.keys(record.data.subs);
    if (subject === undefined) continue;
    sessions.push({ clientId: record.data.id, deviceId: subject.split(".", 1)[0] ?? "" });
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
