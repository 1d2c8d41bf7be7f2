import type { mesh } from "@devmesh/contracts/mesh";
import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import { discover, type ServiceStats } from "@devmesh/service-kit/process/discovery";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Clients } from "@devmesh/service-kit/rpc/implementation";

/** Timeouts for replicas and for the owners of queues, in milliseconds. */
const discoveryMs = 500;
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
    "data" | "devices" | "rpc-bridge" | "mailer"
  >;
  readonly clock: Clock;
}

/** Asks all services how they do, and the owners of queues and devices for numbers. Rejects without the broker. */
export async function readMeshState({ bus, clients, clock }: ReadStateOptions): Promise<MeshState> {
  using call = createCallContext({ timeoutMs: queueMs, clock });
  const [found, ofData, ofBridge, mail, fleet] = await Promise.all([
    findReplicas(bus),
    known(clients.data.readBacklog, call),
    known(clients["rpc-bridge"].readBacklog, call),
    known(clients.mailer.readQueue, call),
    known(clients.devices.summarizeFleet, call),
  ]);
  return {
    timestamp: clock.now().toISOString(),
    services: servicesOf(found),
    queues: {
      data: ofData?.waiting ?? null,
      rpc_bridge: ofBridge?.waiting ?? null,
      mail: mail?.waiting ?? null,
      dead_mail: mail?.dead ?? null,
    },
    ...(fleet !== null && { fleet }),
    ...(mail?.delivery !== undefined && { mail_delivery: mail.delivery }),
  };
}

async function findReplicas(bus: Bus): Promise<readonly ServiceStats[]> {
  try {
    return await discover(bus, discoveryMs);
  } catch (cause) {
    throw ServiceError.of("unavailable", { cause });
  }
}

/** The answer of a queue's owner; null after any error. */
async function known<T>(
  ask: (input: Record<string, never>, call: CallContext) => Promise<T>,
  call: CallContext,
) {
  try {
    return await ask({}, call);
  } catch {
    return null;
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
