import { parseJson } from "@devmesh/contracts/model/json";
import { assertConnected, type Bus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { ActiveSubscription } from "@devmesh/service-kit/events/subscription";
import { RunningTasks } from "@devmesh/service-kit/running-tasks";
import { z } from "zod";
import {
  connectionsSubject,
  deviceConnectSubject,
  deviceDisconnectSubject,
  devicesAccount,
  kickSubject,
} from "./broker-subjects.ts";

/** One MQTT connection of a device. `serverId` and `connectionId` together name it. */
export interface DeviceConnection {
  readonly serverId: string;
  /** Number of the connection on its server; never used twice while the server runs. */
  readonly connectionId: number;
  /** The user it logged in as: the device's id, as the auth callout named it. */
  readonly deviceId: string;
  /** The MQTT client id it came with; empty when it gave none. */
  readonly mqttClientId: string;
}

/** What a server received on a connection. */
export interface Traffic {
  readonly messages: number;
  readonly bytes: number;
}

/** A connection that was made or that ended. */
export interface DeviceConnectionEvent extends DeviceConnection {
  readonly at: Date;
  readonly address: string;
  /** Milliseconds since it was accepted. */
  readonly openMs: number;
  /** Until it ended, without the messages that arrived together with its DISCONNECT packet. */
  readonly received: Traffic;
  /** Why it ended: the broker's words in snake case, such as `slow_consumer_pending_bytes`. Null when it was made. */
  readonly reason: string | null;
}

/** What to do when devices come and go. */
export interface DeviceConnectionHandlers {
  readonly connected: (connection: DeviceConnectionEvent) => void | Promise<void>;
  readonly disconnected: (connection: DeviceConnectionEvent) => void | Promise<void>;
}

const ServerId = z.string().regex(/^[A-Z0-9]+$/);

const ConnectionAdvisory = z.object({
  timestamp: z.coerce.date(),
  server: z.object({ id: ServerId }),
  client: z.object({
    id: z.int(),
    start: z.coerce.date(),
    user: z.string().default(""),
    host: z.string().default(""),
    client_id: z.string().default(""),
    client_type: z.string().default(""),
  }),
  reason: z.string().nullable().default(null),
  // What the client sent.
  sent: z.object({ msgs: z.int().default(0), bytes: z.int().default(0) }).default({ msgs: 0, bytes: 0 }),
});

/**
 * Subscribes to connects and disconnects of devices, in every replica. A killed server publishes none, and a lost bus
 * misses some: compare with `listDeviceConnections`.
 */
export function watchDeviceConnections(bus: Bus, handlers: DeviceConnectionHandlers): ActiveSubscription {
  const running = new RunningTasks();
  const follow = (subject: string, handler: DeviceConnectionHandlers["connected"]) =>
    bus[natsConnection].subscribe(subject, {
      callback: (error, msg) => {
        if (error !== null) {
          bus.log.error({ err: error, subject }, "device connections are no longer received");
          return;
        }
        const advisory = ConnectionAdvisory.safeParse(parseJson(msg.string()));
        if (!advisory.success || advisory.data.client.client_type !== "mqtt") return;
        const { timestamp, server, client, reason, sent } = advisory.data;
        const connection = {
          serverId: server.id,
          connectionId: client.id,
          deviceId: client.user,
          mqttClientId: client.client_id,
          at: timestamp,
          address: client.host,
          openMs: timestamp.getTime() - client.start.getTime(),
          received: { messages: sent.msgs, bytes: sent.bytes },
          reason:
            reason
              ?.toLowerCase()
              .match(/[a-z0-9]+/g)
              ?.join("_") ?? null,
        };
        const handled = (async () => handler(connection))();
        running.add(
          handled.catch((failure: unknown) =>
            bus.log.error({ err: failure, subject }, "a device connection was not handled"),
          ),
        );
      },
    });
  const subscriptions = [
    follow(deviceConnectSubject, handlers.connected),
    follow(deviceDisconnectSubject, handlers.disconnected),
  ];
  return {
    async stop() {
      for (const subscription of subscriptions) subscription.unsubscribe();
      await running.settled();
    },
  };
}

/** An open connection. */
export interface OpenDeviceConnection extends DeviceConnection {
  /** When its server accepted it, and when that server listed it, in Unix milliseconds by that server's clock. */
  readonly acceptedMs: number;
  readonly listedMs: number;
  readonly address: string;
  /** Milliseconds since a message or a subscription last came over it, or a message was sent over it. */
  readonly idleMs: number;
  /** So far. */
  readonly received: Traffic;
}

/** The open device connections, and the servers that reported them. */
export interface DeviceConnections {
  /** Names of the servers that answered, by id. The connections of one that is missing here are unknown, not gone. */
  readonly servers: ReadonlyMap<string, string>;
  readonly connections: readonly OpenDeviceConnection[];
}

/** How connections are listed. */
export interface ListDeviceConnectionsOptions {
  readonly deviceId?: string;
  /** Servers that are expected to answer; default: it is waited for another answer in any case. */
  readonly servers?: number;
  /** How long after one server's answer another's is waited for, in milliseconds. Default 300. */
  readonly stallMs?: number;
  readonly signal?: AbortSignal;
}

/** Connections in one answer of a server: about 600 bytes each, below `max_payload`. */
const pageSize = 512;
/** Pages overlap by so many, so that connections which end between two of them hide none. */
const overlap = 64;

const ConnectionsReply = z.object({
  server: z.object({ id: ServerId, name: z.string() }),
  data: z.object({
    now: z.coerce.date(),
    connections: z
      .array(
        z.object({
          cid: z.int(),
          start: z.coerce.date(),
          last_activity: z.coerce.date(),
          ip: z.string().default(""),
          type: z.string().default(""),
          authorized_user: z.string().default(""),
          mqtt_client: z.string().default(""),
          in_msgs: z.int().default(0),
          in_bytes: z.int().default(0),
        }),
      )
      .nullish()
      .transform((connections) => connections ?? []),
  }),
});
type ConnectionsReply = z.infer<typeof ConnectionsReply>;

/**
 * Asks every server for its device connections. Connections that are made or end meanwhile may be listed or not. Throws
 * `unavailable` when a server stops answering half-way.
 */
export async function listDeviceConnections(
  bus: Bus,
  { deviceId, servers = 0, stallMs = 300, signal }: ListDeviceConnectionsOptions = {},
): Promise<DeviceConnections> {
  const found = new Map<string, Map<number, OpenDeviceConnection>>();
  const names = new Map<string, string>();
  /** Servers of which more is to be read. */
  const unread = new Set<string>();
  const step = pageSize - overlap;
  const user: { readonly user?: string } = deviceId === undefined ? {} : { user: deviceId };
  let offset = 0;
  do {
    signal?.throwIfAborted();
    const query = { ...user, sort: "cid", offset, limit: pageSize } as const;
    const replies = (await askConnections(bus, query, { stallMs, servers: found.size || servers })).filter(
      ({ server }) => found.size === 0 || unread.has(server.id),
    );
    const answered = new Set(replies.map(({ server }) => server.id));
    if ([...unread].some((server) => !answered.has(server)))
      throw ServiceError.of("unavailable", { cause: new Error("a server stopped listing its connections") });
    if (offset > 0 && replies.some((reply) => hasGap(reply, found.get(reply.server.id)))) {
      // So many listed ones have ended that others are now on an earlier page.
      offset -= step;
      continue;
    }
    for (const { server, data } of replies) {
      const known = found.get(server.id) ?? new Map<number, OpenDeviceConnection>();
      found.set(server.id, known);
      names.set(server.id, server.name);
      for (const connection of openConnections({ server, data }))
        known.set(connection.connectionId, connection);
      if (data.connections.length < pageSize) unread.delete(server.id);
      else unread.add(server.id);
    }
    offset += step;
  } while (unread.size > 0);
  return {
    servers: names,
    connections: [...found.values()].flatMap((known) => [...known.values()]),
  };
}

/** Connections are sorted by number: a page that begins after the last known one may have skipped some. */
function hasGap({ data }: ConnectionsReply, known: ReadonlyMap<number, unknown> | undefined): boolean {
  const [first] = data.connections;
  // The page before was full.
  if (first === undefined) return true;
  if (known === undefined || known.size === 0) return false;
  for (const connectionId of known.keys()) if (connectionId >= first.cid) return false;
  return true;
}

/** How the busiest connections are listed. */
export interface ListBusiestConnectionsOptions {
  /** Most connections of each server. */
  readonly limit: number;
  /** Servers that are expected to answer; only while fewer have is another answer waited for. */
  readonly servers: number;
  /** Default 300. */
  readonly stallMs?: number;
}

/** The connections that were active last. */
export interface BusiestConnections {
  /** For each server that answered, by id: how long those that it did not list were idle at least, in milliseconds. */
  readonly othersIdleMs: ReadonlyMap<string, number>;
  readonly connections: readonly OpenDeviceConnection[];
}

/** Asks every server once for those of its device connections that were active last. */
export async function listBusiestConnections(
  bus: Bus,
  { limit, servers, stallMs = 300 }: ListBusiestConnectionsOptions,
): Promise<BusiestConnections> {
  const replies = await askConnections(bus, { sort: "last", offset: 0, limit }, { stallMs, servers });
  const othersIdleMs = new Map<string, number>();
  for (const { server, data } of replies) {
    const last = data.connections.length < limit ? undefined : data.connections.at(-1);
    othersIdleMs.set(
      server.id,
      last === undefined ? Number.POSITIVE_INFINITY : data.now.getTime() - last.last_activity.getTime(),
    );
  }
  return { othersIdleMs, connections: replies.flatMap(openConnections) };
}

function openConnections({ server, data }: ConnectionsReply): OpenDeviceConnection[] {
  return data.connections
    .filter(({ type }) => type === "mqtt")
    .map(({ cid, start, last_activity, ip, authorized_user, mqtt_client, in_msgs, in_bytes }) => ({
      serverId: server.id,
      connectionId: cid,
      deviceId: authorized_user,
      mqttClientId: mqtt_client,
      acceptedMs: start.getTime(),
      // The date is cut to milliseconds, and what was accepted in this one is in the list.
      listedMs: data.now.getTime() + 1,
      idleMs: data.now.getTime() - last_activity.getTime(),
      address: ip,
      received: { messages: in_msgs, bytes: in_bytes },
    }));
}

async function askConnections(
  bus: Bus,
  query: {
    readonly user?: string;
    readonly sort: "cid" | "last";
    readonly offset: number;
    readonly limit: number;
  },
  { stallMs, servers }: { readonly stallMs: number; readonly servers: number },
): Promise<ConnectionsReply[]> {
  assertConnected(bus);
  const replies: ConnectionsReply[] = [];
  try {
    const answers = await bus[natsConnection].requestMany(
      connectionsSubject,
      JSON.stringify({ auth: true, acc: devicesAccount, ...query }),
      {
        strategy: "stall",
        stall: stallMs,
        maxWait: 3_000,
        ...(servers === 0 ? {} : { maxMessages: servers }),
      },
    );
    for await (const answer of answers) {
      const reply = ConnectionsReply.safeParse(parseJson(answer.string()));
      if (reply.success) replies.push(reply.data);
    }
  } catch (cause) {
    throw ServiceError.of("unavailable", { cause });
  }
  if (replies.length === 0)
    throw ServiceError.of("unavailable", { cause: new Error("no server lists connections") });
  return replies;
}

const KickReply = z.object({ error: z.object({ description: z.string().optional() }).optional() });

/** Closes one connection; false when it was gone already. Throws `unavailable` when its server does not answer. */
export async function closeDeviceConnection(
  bus: Bus,
  serverId: string,
  connectionId: number,
): Promise<boolean> {
  assertConnected(bus);
  try {
    const answer = await bus.request(kickSubject(serverId), JSON.stringify({ cid: connectionId }), {
      timeoutMs: 2_000,
    });
    return KickReply.parse(parseJson(answer.string())).error === undefined;
  } catch (cause) {
    throw ServiceError.of("unavailable", { cause });
  }
}
