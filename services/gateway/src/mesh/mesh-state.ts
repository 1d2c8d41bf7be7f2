import { type mesh, type ServiceName, serviceNames } from "@devmesh/contracts/mesh";
import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import { discover, type ServiceStats } from "@devmesh/service-kit/process/discovery";
import { hangs } from "@devmesh/service-kit/rpc/client";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Clients } from "@devmesh/service-kit/rpc/implementation";

/** Timeouts for replicas, for those that gave no answer then, and for the owners of queues, in milliseconds. */
const discoveryMs = 500;
const pingMs = 1_000;
const queueMs = 2_000;

interface MeshReading {
  /** On the monotonic clock. */
  readonly begunAtMs: number;
  /** A `MeshState` as JSON. Rejects with `unavailable` without the broker. */
  readonly state: Promise<string>;
}

/** The last reading, or a new one where the last is `maxAgeMs` old. */
export type ReadMesh = (maxAgeMs: number) => MeshReading;

/** Shares readings of the mesh among clients, so that their number costs the services nothing. */
export function createMeshReader(read: () => Promise<MeshState>, clock: Clock): ReadMesh {
  let last: MeshReading | null = null;
  return (maxAgeMs) => {
    const nowMs = clock.monotonicMs();
    if (last === null || nowMs - last.begunAtMs >= maxAgeMs)
      last = { begunAtMs: nowMs, state: read().then((state) => JSON.stringify(state)) };
    return last;
  };
}

export interface ReadStateOptions {
  readonly bus: Bus;
  /** The owners of queues and of devices. */
  readonly clients: Pick<
    Clients<(typeof mesh)["gateway"]["calls"]>,
    "data" | "devices" | "rpc-bridge" | "jobs" | "mailer" | "webhooks"
  >;
  readonly clock: Clock;
}

/**
 * Returns a function that asks all services how they do, and the owners of queues and devices for numbers, without
 * waiting for those that hang. It rejects without the broker.
 */
export function createStateReading({ bus, clients, clock }: ReadStateOptions): () => Promise<MeshState> {
  const findHanging = createHangingSearch(bus);
  return async () => {
    using call = createCallContext({ timeoutMs: queueMs, clock });
    const replicas = findReplicas(bus);
    const hanging = replicas.then(findHanging);
    /** The answer of a queue's owner; null after any error, and once it is known to hang. */
    const known = <T>(
      service: ServiceName,
      ask: (input: Record<string, never>, call: CallContext) => Promise<T>,
    ) =>
      Promise.race([
        ask({}, call).catch(() => null),
        hanging.then((names) => (names.includes(service) ? null : new Promise<never>(() => undefined))),
      ]);
    const [found, hangingNames, ofData, ofBridge, ofJobs, mail, ofWebhooks, fleet] = await Promise.all([
      replicas,
      hanging,
      known("data", clients.data.readBacklog),
      known("rpc-bridge", clients["rpc-bridge"].readBacklog),
      known("jobs", clients.jobs.readBacklog),
      known("mailer", clients.mailer.readQueue),
      known("webhooks", clients.webhooks.readBacklog),
      known("devices", clients.devices.summarizeFleet),
    ]);
    return {
      timestamp: clock.now().toISOString(),
      services: servicesOf(found),
      hanging: hangingNames,
      queues: {
        data: ofData?.waiting ?? null,
        rpc_bridge: ofBridge?.waiting ?? null,
        jobs: ofJobs?.waiting ?? null,
        mail: mail?.waiting ?? null,
        dead_mail: mail?.dead ?? null,
        webhooks: ofWebhooks?.waiting ?? null,
      },
      ...(fleet !== null && { fleet }),
      ...(mail?.delivery !== undefined && { mail_delivery: mail.delivery }),
    };
  };
}

/** Returns a function that names the services of which a process is connected and answers nothing. */
function createHangingSearch(bus: Bus): (found: readonly ServiceStats[]) => Promise<string[]> {
  /** The service of each replica that answered before, by its id, until it is gone. */
  let known = new Map<string, string>();
  return async (found) => {
    const answering = new Map(found.map(({ id, name }) => [id, name]));
    const silent = [...known].filter(([id]) => !answering.has(id));
    const seen = new Set([...answering.values(), ...silent.map(([, name]) => name)]);
    const unseen = serviceNames.filter((name) => !seen.has(name));
    const [ofReplicas, ofServices] = await Promise.all([
      Promise.all(silent.map(([replica, service]) => hangs(bus, { service, replica, waitMs: pingMs }))),
      Promise.all(unseen.map((service) => hangs(bus, { service, waitMs: pingMs }))),
    ]);
    const hanging = silent.filter((_, at) => ofReplicas[at]);
    known = new Map([...answering, ...hanging]);
    const names = [...hanging.map(([, name]) => name), ...unseen.filter((_, at) => ofServices[at])];
    return [...new Set(names)].sort();
  };
}

async function findReplicas(bus: Bus): Promise<readonly ServiceStats[]> {
  try {
    return await discover(bus, discoveryMs);
  } catch (cause) {
    throw ServiceError.of("unavailable", { cause });
  }
}

function servicesOf(found: readonly ServiceStats[]): MeshState["services"] {
  const replicas = Map.groupBy(found, ({ name }) => name);
  return [...replicas]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, ofIt]) => ({ name, replicas: ofIt.map(replicaOf).sort((a, b) => (a.id < b.id ? -1 : 1)) }));
}

/** Methods that a reading of the mesh calls itself: their requests are no load. */
const ownMethods: ReadonlySet<string> = new Set(["readBacklog", "readQueue", "summarizeFleet"]);

function replicaOf({ id, version, metadata, started, endpoints, figures }: ServiceStats) {
  const ofOthers = endpoints.filter(({ name }) => !ownMethods.has(name));
  return {
    id,
    release: metadata.release ?? null,
    version,
    started,
    figures,
    endpoints: ofOthers.map((endpoint) => ({
      name: endpoint.name,
      requests: endpoint.num_requests,
      errors: endpoint.num_errors,
      mean_ms: milliseconds(endpoint.average_processing_time),
      total_ms: milliseconds(endpoint.processing_time),
    })),
  };
}

/** Nanoseconds in milliseconds, to the microsecond. */
function milliseconds(ns: number): number {
  return Math.round(ns / 1_000) / 1_000;
}
