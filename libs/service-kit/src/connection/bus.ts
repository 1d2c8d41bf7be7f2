import { errors, type NatsConnection, type Subscription } from "@nats-io/nats-core";
import { connect, type NodeConnectionOptions } from "@nats-io/transport-node";
import { systemClock, withTimeout } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import { createLogger, type Logger } from "../logger.ts";
import { createMetrics, type Metrics } from "../metrics.ts";
import { retry } from "../retry.ts";
import { inboxPrefix } from "../subjects.ts";
import type { Tracer } from "../tracing/tracer.ts";
import { natsConnection } from "./nats-connection.ts";
import { createRequests, type SendRequest } from "./requests.ts";

/** How a service reaches the bus. */
export interface BusOptions {
  /** One or more servers, comma-separated. */
  readonly url: string;
  readonly user?: string;
  readonly password?: string;
  /** Name of the service: shown by the broker, part of log lines, and its queue group. */
  readonly name: string;
  /** Default `_INBOX_<name>`: the only place below which the user may receive replies. */
  readonly inboxPrefix?: string;
  /** Default: random. Identifies this process in discovery and logs. */
  readonly replicaId?: string;
  /** How many servers keep each stream this process makes. Default 1. */
  readonly streamReplicas?: number;
  readonly log?: Logger;
  readonly metrics?: Metrics;
  /** Records calls, events and jobs. Default: none. */
  readonly tracer?: Tracer;
  readonly signal?: AbortSignal;
  /** How long after its loss calls wait for the connection, in milliseconds. Default 2 s. */
  readonly reconnectGraceMs?: number;
}

/** Default of `reconnectGraceMs`: another server of a cluster takes the connection within it. */
const defaultGraceMs = 2_000;

/** Longest wait for one server of `url` to accept a connection and its login, in milliseconds. */
const connectTimeoutMs = 2_000;

/**
 * How long the broker may take to confirm the end of a subscription or a connection, in milliseconds. The client itself
 * waits for a broker that is gone until its next attempt to connect, and half a minute for one that hangs.
 */
const confirmationMs = 2_000;

/** A server announces its stop some 10 s before it closes connections. Until then replicas leave it, in turn. */
const leaveWithinMs = 5_000;

/**
 * Longest wait until no message is on its way that would be lost with the connection, in milliseconds, and how often a
 * bus looks. Less than calls wait for a service without a replica.
 */
const idleMs = 3_000;
const lookMs = 5;

/**
 * Most replies, of services and of devices, arrive sooner than this after their request, in milliseconds; a slow one
 * rarely arrives just when a server is left.
 */
export const replySoonMs = 1_000;

/** A use of a connection that loses messages when the connection is replaced. */
export interface ConnectionUse {
  /** Whether a message is on its way that would be lost. */
  isBusy(): boolean;
  /** Of a use that answers requests: takes no more of them before a server is left, and again afterwards. */
  readonly requests?: { pause(): Promise<void>; resume(): void };
}

/** A connection to the broker, shared by all calls, events and queues of a process. */
export interface Bus {
  readonly name: string;
  /** The broker user it is logged in as; the service's name when the broker asks for none. */
  readonly user: string;
  readonly replicaId: string;
  /** Replies arrive below this subject. */
  readonly inboxPrefix: string;
  readonly streamReplicas: number;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer | undefined;
  readonly request: SendRequest;
  /** For this package and `device-broker` alone; nothing else imports the NATS client. */
  readonly [natsConnection]: NatsConnection;
  readonly connected: boolean;
  /**
   * Resolves when there is a connection for a call, `reconnectGraceMs` after its loss, or when the signal aborts. There
   * is none while the bus leaves a server that is about to stop.
   */
  awaitConnection(signal: AbortSignal): Promise<void>;
  /** Makes the bus leave a server that is about to stop when this use is not busy, within three seconds. */
  leaveAfter(use: ConnectionUse): void;
  /** Resolves when the connection has ended for good: undefined after `close`, else the error that ended it. */
  readonly ended: Promise<Error | undefined>;
  /** Runs `hook` after each reconnect: events meanwhile were missed. Returns its removal. */
  onReconnect(hook: () => void): () => void;
  /** Runs `hook` at each loss of the connection. Returns its removal. */
  onDisconnect(hook: () => void): () => void;
  /** Resolves when the broker has processed all that was sent before. */
  flush(): Promise<void>;
  /** Ends subscriptions after what they received was handed over, sends what is pending, disconnects. */
  close(): Promise<void>;
}

/**
 * Connects, waiting for the broker until `signal` aborts, and reconnects for ever. Refused credentials reject at once.
 */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const {
    url,
    user,
    password,
    name,
    replicaId = randomReplicaId(),
    streamReplicas = 1,
    reconnectGraceMs = defaultGraceMs,
    tracer,
    signal,
  } = options;
  const log = options.log ?? createLogger({ service: name, level: "info", replica: replicaId });
  const metrics = options.metrics ?? createMetrics();
  const inbox = options.inboxPrefix ?? inboxPrefix(name);
  const connection = await firstConnection(
    {
      servers: url.split(",").map((server) => server.trim()),
      name: `${name}/${replicaId}`,
      ...(user === undefined ? {} : { user }),
      ...(password === undefined ? {} : { pass: password }),
      inboxPrefix: inbox,
      // An address that drops packets would hold up the next one for the client's default of 20 s.
      timeout: connectTimeoutMs,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      reconnectJitter: 250,
      pingInterval: 10_000,
      maxPingOut: 2,
      // Without it every request captures a stack, a third of its cost.
      noAsyncTraces: true,
    },
    log,
    signal,
  );
  return createBus(connection, reconnectGraceMs, {
    name,
    user: user ?? name,
    replicaId,
    inboxPrefix: inbox,
    streamReplicas,
    log,
    metrics,
    tracer,
  });
}

/** There is no connection to the broker; nothing was sent. */
export class NotConnected extends Error {
  override readonly name = "NotConnected";
}

/** Throws `unavailable` without a connection, with {@link NotConnected} as its cause. */
export function assertConnected(bus: Bus): void {
  if (!bus.connected)
    throw ServiceError.of("unavailable", {
      service: "nats-server",
      cause: new NotConnected("not connected to the broker"),
    });
}

type Identity = Pick<
  Bus,
  "name" | "user" | "replicaId" | "inboxPrefix" | "streamReplicas" | "log" | "metrics" | "tracer"
>;

function createBus(connection: NatsConnection, graceMs: number, identity: Identity): Bus {
  const { user, log, metrics } = identity;
  const reconnectHooks = new Set<() => void>();
  const disconnectHooks = new Set<() => void>();
  const requests = createRequests(connection, identity.inboxPrefix);
  const uses: ConnectionUse[] = [];
  let connected = false;
  let isServerStopping = false;
  let leaving = false;
  let lostAtMs = Number.NEGATIVE_INFINITY;

  function setConnected(isConnected: boolean): void {
    connected = isConnected;
    metrics.busConnected.set({ user }, isConnected ? 1 : 0);
  }

  function run(hooks: Iterable<() => void>): void {
    for (const hook of [...hooks]) {
      try {
        hook();
      } catch (error) {
        log.error({ err: error }, "a connection hook failed");
      }
    }
  }

  function add(hooks: Set<() => void>, hook: () => void): () => void {
    hooks.add(hook);
    return () => void hooks.delete(hook);
  }

  /**
   * Connects to another server when no message is on its way over this one. Without requests to answer, the process
   * makes its calls wait meanwhile; with some, an answer may need them.
   */
  async function leaveServer(): Promise<void> {
    await systemClock.sleep(Math.random() * leaveWithinMs);
    if (!isServerStopping || connection.isDraining()) return;
    const answering = uses.flatMap(({ requests }) => requests ?? []);
    leaving = answering.length === 0;
    lostAtMs = performance.now();
    const isBusy = () =>
      performance.now() < lostAtMs + idleMs &&
      (requests.isReplyNear(replySoonMs) || uses.some((use) => use.isBusy()));
    try {
      await Promise.all(answering.map((use) => use.pause()));
      do {
        while (isBusy()) await systemClock.sleep(lookMs);
        await connection.flush();
      } while (isBusy());
      if (isServerStopping) await connection.reconnect();
    } finally {
      for (const use of answering) use.resume();
    }
  }

  async function followStatus(): Promise<void> {
    for await (const status of connection.status()) {
      switch (status.type) {
        case "ldm":
          // The server repeats it with each change of the cluster.
          if (isServerStopping) break;
          isServerStopping = true;
          log.info({ server: status.server }, "the server of the broker is about to stop");
          leaveServer().catch((error: unknown) => log.debug({ err: error }, "the server was lost before"));
          break;
        case "disconnect":
          setConnected(false);
          isServerStopping = false;
          leaving = false;
          lostAtMs = performance.now();
          requests.loseConnection();
          log.warn({ server: status.server }, "lost the connection to the broker");
          run(disconnectHooks);
          break;
        case "reconnect":
          setConnected(true);
          metrics.busReconnects.inc();
          log.info({ server: status.server }, "connected to the broker again");
          run(reconnectHooks);
          break;
        case "error":
          log.warn({ err: status.error }, "the broker reports an error");
          requests.fail(status.error);
          break;
        case "slowConsumer":
          log.warn({ subject: status.sub.getSubject(), pending: status.pending }, "messages pile up");
          break;
      }
    }
  }

  setConnected(true);
  followStatus().catch((error: unknown) => log.error({ err: error }, "the connection's status is lost"));
  const bus: Bus = {
    ...identity,
    [natsConnection]: connection,
    request: requests.send,
    ended: connection.closed().then((error) => {
      setConnected(false);
      requests.close();
      return error instanceof Error ? error : undefined;
    }),
    get connected() {
      return connected;
    },
    async awaitConnection(signal) {
      const leftMs = lostAtMs + graceMs - performance.now();
      if ((!connected || leaving) && leftMs > 0) await pause(bus, leftMs, signal);
    },
    leaveAfter: (use) => void uses.push(use),
    onReconnect: (hook) => add(reconnectHooks, hook),
    onDisconnect: (hook) => add(disconnectHooks, hook),
    flush: () => connection.flush(),
    async close() {
      if (connection.isClosed()) return;
      try {
        const isDrained = connected && (await withTimeout(confirmationMs, connection.drain()));
        if (isDrained) return;
      } catch (error) {
        log.debug({ err: error }, "the connection was lost while it was drained");
      }
      await connection.close();
    },
  };
  return bus;
}

function randomReplicaId(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 12);
}

/** Waits for a broker that is not up yet: the client's own wait for it takes no signal. */
async function firstConnection(
  options: NodeConnectionOptions,
  log: Logger,
  signal?: AbortSignal,
): Promise<NatsConnection> {
  try {
    return await retry(() => connect(options), {
      firstMs: 250,
      longestMs: 250,
      isRetried(error, failures) {
        if (error instanceof errors.AuthorizationError || error instanceof errors.InvalidArgumentError)
          return false;
        if (failures % 20 === 1) log.warn({ err: error }, "waiting for the broker");
        return true;
      },
      signal,
    });
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  }
}

/** Waits `ms` milliseconds, less when the bus comes back or `signal` aborts meanwhile; never rejects. */
export async function pause(bus: Bus, ms: number, signal: AbortSignal): Promise<void> {
  const woken = new AbortController();
  const off = bus.onReconnect(() => woken.abort());
  await systemClock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
  off();
}

/** Ends a subscription after its received messages were handled; at once without a connection. */
export async function endSubscription(bus: Bus, subscription: Subscription): Promise<void> {
  if (subscription.isClosed()) return;
  try {
    const isDrained = bus.connected && (await withTimeout(confirmationMs, subscription.drain()));
    if (!isDrained) subscription.unsubscribe();
  } catch (error) {
    // The connection went meanwhile, and the subscription with it.
    bus.log.debug({ err: error }, "a subscription ended with its connection");
  }
}
