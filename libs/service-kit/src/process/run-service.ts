import { flushCompileCache } from "node:module";
import type { ContractDeclaration, EventsDeclaration } from "@devmesh/contracts/contract";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import type { z } from "zod";
import { type Clock, systemClock, withTimeout } from "../clock.ts";
import { type Bus, connectBus } from "../connection/bus.ts";
import { createPublisher, type Publisher } from "../events/publisher.ts";
import { createLogger, type Logger } from "../logger.ts";
import { createMetrics, type Metrics } from "../metrics.ts";
import { createClient } from "../rpc/client.ts";
import type { Clients, Implementation } from "../rpc/implementation.ts";
import { type EndpointStats, type Served, serve } from "../rpc/serve.ts";
import { meshUser } from "../subjects.ts";
import { openTracer } from "../tracing/open-tracer.ts";
import type { Tracer } from "../tracing/tracer.ts";
import { type Announced, announce, type FigureReaders } from "./discovery.ts";
import { parseEnv, type ServiceEnv } from "./env.ts";
import { type OpsServer, type ReadinessCheck, startOpsServer } from "./ops-server.ts";

/** Time beyond `DRAIN_MS` for flushing and closing stores before the process ends regardless, in milliseconds. */
const closingMs = 5_000;

/** How long a stop waits for a start that is under way, in milliseconds. */
const startingMs = 2_000;

/**
 * Opens another connection of the process, as another user of the broker. It is a check of readiness by its name, ends
 * the process when it ends, and is closed after the service.
 */
export type ConnectAs = (name: string, user: string, password: string | undefined) => Promise<Bus>;

/** What a service is started with. */
export interface StartOptions<S extends ServiceDeclaration, E> {
  readonly env: E;
  readonly bus: Bus;
  readonly connectAs: ConnectAs;
  /** Publishes the service's own events; undefined when it declares none. */
  readonly publisher: S["publishes"] extends EventsDeclaration ? Publisher<S["publishes"]> : undefined;
  /** What the service declares to call, by service. */
  readonly clients: Clients<S["calls"]>;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Aborts when the service begins to stop. */
  readonly signal: AbortSignal;
  /** Adds a check that `/readyz` asks. */
  readonly ready: (name: string, check: ReadinessCheck) => void;
  /** Calls `handle` with each message of the launcher; never where another program started the service. */
  readonly onLauncherMessage: (handle: (message: unknown) => void) => void;
}

/** What a started service hands back. */
export interface ServiceParts<C extends ContractDeclaration | null> {
  /** Answers the service's contract; null for a service that answers none. */
  readonly implementation: C extends ContractDeclaration ? Implementation<C> : null;
  /** What the service answers in other ways than by its contract, for discovery. */
  readonly elsewhere?: readonly EndpointStats[];
  /** What the service counts besides requests, for discovery. */
  readonly figures?: FigureReaders;
  /** Checked at each `/readyz`, besides the bus. */
  readonly ready?: ReadinessCheck;
  /** At shutdown, once running calls are done: ends what the service does by itself, such as consuming a queue. */
  readonly stop?: () => Promise<void>;
  /** At shutdown, last: closes the store. */
  readonly close?: () => Promise<void>;
}

/** Starts the parts of a service. */
export type StartService<S extends ServiceDeclaration, E> = (
  options: StartOptions<S, E>,
) => Promise<ServiceParts<S["serves"]>>;

/** One service: its name in the mesh, what it declares, its environment, and how it starts. */
export interface ServiceDefinition<S extends ServiceDeclaration, V extends z.ZodType<ServiceEnv>> {
  readonly name: string;
  readonly declaration: S;
  readonly env: V;
  readonly start: StartService<S, z.output<V>>;
  /**
   * Once started, the service stays ready without the broker: otherwise all replicas of a load-balanced service would
   * be taken out at once, and nobody would answer 503.
   */
  readonly readyWithoutBroker?: boolean;
}

/**
 * Runs a service: environment, broker, start, serve, ready. On SIGTERM, SIGINT or loss of the launcher it drains calls
 * within `DRAIN_MS`, closes its store and exits with 0. A failed start or an uncaught error exits with 1. Resolves when
 * the service is ready.
 */
export async function runService<const S extends ServiceDeclaration, V extends z.ZodType<ServiceEnv>>(
  definition: ServiceDefinition<S, V>,
): Promise<void> {
  const env = parseEnv(definition.env);
  const log = createLogger({
    service: definition.name,
    level: env.LOG_LEVEL,
    ...(env.REPLICA_ID === undefined ? {} : { replica: env.REPLICA_ID }),
  });
  const life = new ServiceLife(definition, env, log);
  process.on("uncaughtException", (error) => life.crash(error));
  process.on("unhandledRejection", (error) => life.crash(error));
  process.on("SIGTERM", () => life.shutDown("SIGTERM"));
  process.on("SIGINT", () => life.shutDown("SIGINT"));
  process.on("disconnect", () => life.shutDown("the launcher is gone"));
  await life.begin();
}

class ServiceLife<S extends ServiceDeclaration, V extends z.ZodType<ServiceEnv>> {
  readonly #definition: ServiceDefinition<S, V>;
  readonly #env: z.output<V>;
  readonly #log: Logger;
  readonly #metrics = createMetrics({ processMetrics: true });
  readonly #checks = new Map<string, ReadinessCheck>();
  readonly #stopping = new AbortController();
  #starting: Promise<void> = Promise.resolve();
  /** The last one opened comes first. */
  readonly #buses: Bus[] = [];
  #started: ServiceParts<ContractDeclaration | null> | undefined;
  #served: Served | undefined;
  #announced: Announced | undefined;
  #ops: OpsServer | undefined;
  #tracer: Tracer | undefined;

  constructor(definition: ServiceDefinition<S, V>, env: z.output<V>, log: Logger) {
    this.#definition = definition;
    this.#env = env;
    this.#log = log;
  }

  async begin(): Promise<void> {
    this.#checks.set("started", () => false);
    try {
      this.#starting = this.#start();
      await this.#starting;
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      const message = error instanceof Error ? error.message : String(error);
      this.#log.fatal({ err: error }, `${this.#definition.name} could not start: ${message}`);
      tellLauncher({ type: "failed", message });
      this.#stopping.abort(error);
      await this.#close().catch(() => undefined);
      process.exit(1);
    }
    // Stopped meanwhile: the service must not report itself ready.
    if (this.#stopping.signal.aborted) return;
    this.#checks.set("started", () => true);
    const ops = this.#ops?.url ?? "";
    this.#log.info({ ops }, "ready");
    tellLauncher({ type: "ready", ops });
    // A service that is killed one day leaves the next start its compiled code all the same.
    flushCompileCache();
  }

  /** Begins the shutdown, once. */
  shutDown(why: string): void {
    if (this.#stopping.signal.aborted) return;
    this.#checks.set("stopping", () => false);
    this.#log.info({ why }, "stopping");
    this.#stopping.abort(new Error("the service is stopping"));
    // Unlike a store that hangs, this cannot be waited for: the process must end in bounded time.
    setTimeout(() => {
      this.#log.error("stopping took too long");
      process.exit(1);
    }, this.#env.DRAIN_MS + closingMs).unref();
    this.#stop().then(
      () => process.exit(0),
      (error: unknown) => {
        this.#log.error({ err: error }, "stopping failed");
        process.exit(1);
      },
    );
  }

  crash(error: unknown): void {
    this.#log.fatal({ err: error }, "an error nobody caught ends the process");
    process.exit(1);
  }

  async #start(): Promise<void> {
    const { name, declaration } = this.#definition;
    const env = this.#env;
    const log = this.#log;
    const metrics = this.#metrics;
    const { signal } = this.#stopping;
    this.#ops = await startOpsServer({
      service: name,
      host: env.OPS_HOST,
      port: env.OPS_PORT,
      metrics,
      checks: this.#checks,
    });
    this.#tracer = await openTracer(env, name, log);
    const connection = {
      url: env.NATS_URL,
      name,
      streamReplicas: env.STREAM_REPLICAS,
      log,
      metrics,
      signal,
      ...(env.REPLICA_ID === undefined ? {} : { replicaId: env.REPLICA_ID }),
      ...(this.#tracer === undefined ? {} : { tracer: this.#tracer }),
    };
    const user = env.NATS_USER ?? name;
    const connectAs: ConnectAs = async (check, as, password) => {
      const opened = await connectBus({
        ...connection,
        ...(password !== undefined && { user: as, password }),
      });
      this.#buses.unshift(opened);
      this.#watch(check, opened);
      return opened;
    };
    const bus = await connectAs("bus", meshUser(user), env.NATS_PASSWORD);
    const started = await this.#definition.start({
      env,
      bus,
      connectAs,
      publisher:
        declaration.publishes === null ? undefined : await createPublisher(bus, declaration.publishes),
      clients: Object.fromEntries(
        declaration.calls.map((dependency) => [dependency.contract.service, createClient(bus, dependency)]),
      ),
      log,
      clock: systemClock,
      metrics,
      signal,
      ready: (check: string, passes: ReadinessCheck) => void this.#checks.set(check, passes),
      onLauncherMessage: (handle: (message: unknown) => void) => void process.on("message", handle),
      // Names and events known at run time meet here the types derived from the declaration.
    } as unknown as StartOptions<S, z.output<V>>);
    this.#started = started as ServiceParts<ContractDeclaration | null>;
    if (started.ready !== undefined) this.#checks.set("service", started.ready);
    if (signal.aborted) return;
    if (declaration.serves !== null) {
      this.#served = serve(
        bus,
        declaration.serves,
        started.implementation as Implementation<ContractDeclaration>,
      );
    }
    this.#announced = announce(bus, {
      description: `${name} of Devmesh`,
      served: this.#served === undefined ? [] : [this.#served],
      ...(started.elsewhere === undefined ? {} : { elsewhere: started.elsewhere }),
      ...(started.figures === undefined ? {} : { figures: started.figures }),
    });
    // The broker must know the subscriptions before the service reports itself ready.
    await bus.flush();
  }

  #watch(check: string, bus: Bus): void {
    if (!this.#definition.readyWithoutBroker) this.#checks.set(check, () => bus.connected);
    void bus.ended.then((error) => {
      if (!this.#stopping.signal.aborted) this.crash(error ?? new Error(`the ${check} was closed`));
    });
  }

  async #stop(): Promise<void> {
    // A start whose connections are closed under it would leave its store open, and errors that nothing handles.
    await withTimeout(startingMs, this.#starting).catch(() => undefined);
    this.#announced?.withdraw();
    const unfinished = (await this.#served?.drain(this.#env.DRAIN_MS)) ?? 0;
    if (unfinished > 0) this.#log.warn({ unfinished }, "calls were cut short");
    await this.#close();
    this.#log.info("stopped");
  }

  /** Each step is taken even when one before it failed; the first failure is reported. */
  async #close(): Promise<void> {
    const steps = [
      () => this.#started?.stop?.(),
      () => this.#started?.close?.(),
      ...this.#buses.map((bus) => () => bus.close()),
      () => this.#tracer?.close(),
      () => this.#ops?.close(),
    ];
    const failures: unknown[] = [];
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** Messages to a launcher that started the process with an IPC channel. */
export type LauncherMessage =
  | { readonly type: "ready"; readonly ops: string }
  | { readonly type: "failed"; readonly message: string };

function tellLauncher(message: LauncherMessage): void {
  if (process.connected) process.send?.(message);
}
