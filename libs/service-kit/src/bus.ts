import { errors, type NatsConnection } from "@nats-io/nats-core";
import { connect, type NodeConnectionOptions } from "@nats-io/transport-node";
import { ServiceError } from "./errors.ts";
import { createLogger, type Logger } from "./logger.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { retry } from "./retry.ts";
import { inboxPrefix } from "./subjects.ts";

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
  /** Gives up connecting. */
  readonly signal?: AbortSignal;
}

/** Longest wait for one server of `url` to accept a connection and its login, in milliseconds. */
const connectTimeoutMs = 2_000;

/** A connection to the broker, shared by all calls, events and queues of a process. */
export interface Bus {
  /** Name of the service that owns it. */
  readonly name: string;
  /** The broker user it is logged in as; the service's name when the broker asks for none. */
  readonly user: string;
  readonly replicaId: string;
  /** Replies arrive below this subject. */
  readonly inboxPrefix: string;
  readonly streamReplicas: number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** For this package alone; nothing outside it imports the NATS client. */
  readonly connection: NatsConnection;
  /** False between a lost connection and the next one. */
  readonly connected: boolean;
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
  const { url, user, password, name, replicaId = randomReplicaId(), streamReplicas = 1, signal } = options;
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
  return new NatsBus(connection, {
    name,
    user: user ?? name,
    replicaId,
    inboxPrefix: inbox,
    streamReplicas,
    log,
    metrics,
  });
}

/** Throws `unavailable` without a connection. */
export function assertConnected(bus: Bus): void {
  if (!bus.connected)
    throw ServiceError.of("unavailable", { cause: new Error("not connected to the broker") });
}

class NatsBus implements Bus {
  readonly name: string;
  readonly user: string;
  readonly replicaId: string;
  readonly inboxPrefix: string;
  readonly streamReplicas: number;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly connection: NatsConnection;
  readonly ended: Promise<Error | undefined>;
  #connected = true;
  readonly #reconnectHooks = new Set<() => void>();
  readonly #disconnectHooks = new Set<() => void>();

  constructor(
    connection: NatsConnection,
    identity: Pick<Bus, "name" | "user" | "replicaId" | "inboxPrefix" | "streamReplicas" | "log" | "metrics">,
  ) {
    this.connection = connection;
    this.name = identity.name;
    this.user = identity.user;
    this.replicaId = identity.replicaId;
    this.inboxPrefix = identity.inboxPrefix;
    this.streamReplicas = identity.streamReplicas;
    this.log = identity.log;
    this.metrics = identity.metrics;
    this.ended = connection.closed().then((error) => {
      this.#setConnected(false);
      return error instanceof Error ? error : undefined;
    });
    this.#setConnected(true);
    this.#follow().catch((error: unknown) => this.log.error({ err: error }, "status of the bus is lost"));
  }

  get connected(): boolean {
    return this.#connected;
  }

  onReconnect(hook: () => void): () => void {
    this.#reconnectHooks.add(hook);
    return () => void this.#reconnectHooks.delete(hook);
  }

  onDisconnect(hook: () => void): () => void {
    this.#disconnectHooks.add(hook);
    return () => void this.#disconnectHooks.delete(hook);
  }

  flush(): Promise<void> {
    return this.connection.flush();
  }

  async close(): Promise<void> {
    if (this.connection.isClosed()) return;
    try {
      if (this.#connected && !this.connection.isDraining()) return await this.connection.drain();
    } catch (error) {
      this.log.debug({ err: error }, "the broker went during the farewell");
    }
    await this.connection.close();
  }

  #setConnected(connected: boolean): void {
    this.#connected = connected;
    this.metrics.busConnected.set({ user: this.user }, connected ? 1 : 0);
  }

  async #follow(): Promise<void> {
    for await (const status of this.connection.status()) {
      switch (status.type) {
        case "disconnect":
          this.#setConnected(false);
          this.log.warn({ server: status.server }, "lost the connection to the broker");
          this.#run(this.#disconnectHooks);
          break;
        case "reconnect":
          this.#setConnected(true);
          this.metrics.busReconnects.inc();
          this.log.info({ server: status.server }, "connected to the broker again");
          this.#run(this.#reconnectHooks);
          break;
        case "error":
          this.log.warn({ err: status.error }, "the broker reports an error");
          break;
        case "slowConsumer":
          this.log.warn({ subject: status.sub.getSubject(), pending: status.pending }, "messages pile up");
          break;
      }
    }
  }

  #run(hooks: Iterable<() => void>): void {
    for (const hook of [...hooks]) {
      try {
        hook();
      } catch (error) {
        this.log.error({ err: error }, "a connection hook failed");
      }
    }
  }
}

function randomReplicaId(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 12);
}

/** Waits for a broker that is not up yet: the client's own wait for it takes no signal. */
function firstConnection(
  options: NodeConnectionOptions,
  log: Logger,
  signal?: AbortSignal,
): Promise<NatsConnection> {
  return retry(() => connect(options), {
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
}
