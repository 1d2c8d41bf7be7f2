import type { ContractDeclaration } from "@devmesh/contracts/contract";
import { parseJson } from "@devmesh/contracts/model/json";
import { ReplicaFigures } from "@devmesh/contracts/model/mesh-state";
import { release } from "@devmesh/contracts/release";
import type { Msg } from "@nats-io/nats-core";
import { z } from "zod";
import { withTimeout } from "../clock.ts";
import type { Bus } from "../connection/bus.ts";
import { natsConnection } from "../connection/nats-connection.ts";
import type { EndpointStats, Served } from "../rpc/serve.ts";
import { type DiscoveryVerb, discoverAll, discoverySubjects, discoveryVerbs } from "../subjects.ts";

/** Answer to `$SRV.STATS` (ADR-32); times are in nanoseconds. */
export const ServiceStats = z.object({
  type: z.literal("io.nats.micro.v1.stats_response"),
  name: z.string(),
  id: z.string(),
  version: z.string(),
  metadata: z.record(z.string(), z.string()),
  started: z.string(),
  /** Ours; absent in the answers of other services on the bus. */
  figures: ReplicaFigures.default({}).catch({}),
  endpoints: z.array(
    z.object({
      name: z.string(),
      subject: z.string(),
      queue_group: z.string(),
      num_requests: z.int().min(0),
      num_errors: z.int().min(0),
      last_error: z.string(),
      processing_time: z.int().min(0),
      average_processing_time: z.int().min(0),
    }),
  ),
});
export type ServiceStats = z.infer<typeof ServiceStats>;

/** Content of a service's discovery replies. */
export interface Announcement {
  readonly description: string;
  /** Empty for a service that answers nothing. */
  readonly served: readonly Served[];
  /** What it answers in other ways than over NATS, such as HTTP: `STATS` counts it, `INFO` does not offer it. */
  readonly elsewhere?: readonly EndpointStats[];
  /** What it counts in addition to requests; one that fails or takes longer than `figuresMs` is left out. */
  readonly figures?: FigureReaders;
}

/** How the figures of a replica are read. */
export type FigureReaders = { readonly [F in keyof ReplicaFigures]?: () => number | Promise<number> };

/** How long figures may take, in milliseconds: `discover` waits longer for the answer. */
const figuresMs = 250;

/** An announced service. */
export interface Announced {
  withdraw(): void;
}

/** Answers `$SRV.PING`, `INFO` and `STATS` for this replica (ADR-32), so that `nats micro ls` lists it. */
export function announce(bus: Bus, options: Announcement): Announced {
  const { description, served, elsewhere = [], figures = {} } = options;
  const started = new Date().toISOString();
  const who = {
    name: bus.name,
    id: bus.replicaId,
    version: versionOf(served.map(({ contract }) => contract)),
    metadata: { release },
  };
  const endpoints = served.flatMap((one) => one.endpoints);
  const answers: Record<DiscoveryVerb, () => object | Promise<object>> = {
    PING: () => ({ type: "io.nats.micro.v1.ping_response", ...who }),
    INFO: () => ({
      type: "io.nats.micro.v1.info_response",
      ...who,
      description,
      endpoints: endpoints.map(({ name, subject, queueGroup }) => ({
        name,
        subject,
        queue_group: queueGroup,
        metadata: {},
      })),
    }),
    STATS: async (): Promise<ServiceStats> => ({
      type: "io.nats.micro.v1.stats_response",
      ...who,
      started,
      figures: await readFigures(figures),
      endpoints: [...endpoints, ...elsewhere].map(statsOf),
    }),
  };
  const subscriptions = discoveryVerbs.flatMap((verb) =>
    discoverySubjects(verb, bus.name, bus.replicaId).map((subject) =>
      bus[natsConnection].subscribe(subject, {
        callback: (error, msg) => {
          if (error === null) void respond(bus, msg, answers[verb]);
          else bus.log.error({ err: error, subject }, "discovery is not answered");
        },
      }),
    ),
  );
  return {
    withdraw() {
      for (const subscription of subscriptions) subscription.unsubscribe();
    },
  };
}

/** Every replica of every service that answers within `waitMs`. */
export async function discover(bus: Bus, waitMs = 500): Promise<readonly ServiceStats[]> {
  const found: ServiceStats[] = [];
  const answers = await bus[natsConnection].requestMany(discoverAll, "", {
    strategy: "timer",
    maxWait: waitMs,
  });
  for await (const answer of answers) {
    const parsed = ServiceStats.safeParse(parseJson(answer.string()));
    if (parsed.success) found.push(parsed.data);
  }
  return found;
}

/** Without its store a service lacks figures, but it must not seem to be away. */
async function readFigures(readers: FigureReaders): Promise<ReplicaFigures> {
  const figures: Record<string, number> = {};
  const reading = Object.entries(readers).map(async ([name, read]) => {
    const value = (async () => read())();
    if (await withTimeout(figuresMs, value).catch(() => false)) figures[name] = await value;
  });
  await Promise.all(reading);
  return figures;
}

async function respond(bus: Bus, msg: Msg, answer: () => object | Promise<object>): Promise<void> {
  try {
    msg.respond(JSON.stringify(await answer()));
  } catch (error) {
    bus.log.warn({ err: error }, "discovery could not be answered");
  }
}

function statsOf(endpoint: EndpointStats): ServiceStats["endpoints"][number] {
  const { name, subject, queueGroup, requests, errors, processingNs, lastError } = endpoint;
  return {
    name,
    subject,
    queue_group: queueGroup,
    num_requests: requests,
    num_errors: errors,
    last_error: lastError,
    processing_time: processingNs,
    average_processing_time: requests === 0 ? 0 : Math.trunc(processingNs / requests),
  };
}

function versionOf(contracts: readonly ContractDeclaration[]): string {
  return `${Math.max(1, ...contracts.map(({ version }) => version))}.0.0`;
}
