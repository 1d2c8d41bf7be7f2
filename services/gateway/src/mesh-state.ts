import type { data } from "@devmesh/contracts/data";
import type { mailer } from "@devmesh/contracts/mailer";
import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import { type CallContext, createCallContext } from "@devmesh/service-kit/context";
import { discover, type ServiceStats } from "@devmesh/service-kit/discovery";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { Client } from "@devmesh/service-kit/implementation";

/** How long one reading serves all who ask, in milliseconds. */
const freshMs = 1_000;
/** How long replicas have to answer, and owners of queues, in milliseconds. */
const discoveryMs = 500;
const queueMs = 2_000;

/** What a reading asks. */
export interface MeshStateOptions {
  readonly bus: Bus;
  readonly clients: {
    readonly data: Client<typeof data, "readBacklog">;
    readonly "rpc-bridge": Client<typeof rpcBridge, "readBacklog">;
    readonly mailer: Client<typeof mailer, "readQueue">;
  };
  readonly clock: Clock;
}

/** How the mesh does, at most a second ago. Throws `unavailable` while the gateway is cut off from it. */
export type ReadMeshState = () => Promise<MeshState>;

/** Readings of the mesh's state, each shared by all who ask while it is fresh: services are asked once, however many look. */
export function createMeshStateReader(options: MeshStateOptions): ReadMeshState {
  const { clock } = options;
  let last: { readonly state: Promise<MeshState>; readonly atMs: number } | null = null;
  return async () => {
    if (last !== null && clock.monotonicMs() - last.atMs < freshMs) return await last.state;
    last = { state: readState(options), atMs: clock.monotonicMs() };
    return await last.state;
  };
}

async function readState({ bus, clients, clock }: MeshStateOptions): Promise<MeshState> {
  using call = createCallContext({ timeoutMs: queueMs, clock });
  const [found, ofData, ofBridge, mail] = await Promise.all([
    findReplicas(bus),
    known(clients.data.readBacklog, call),
    known(clients["rpc-bridge"].readBacklog, call),
    known(clients.mailer.readQueue, call),
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
  };
}

async function findReplicas(bus: Bus): Promise<readonly ServiceStats[]> {
  try {
    return await discover(bus, discoveryMs);
  } catch (cause) {
    throw ServiceError.of("unavailable", { cause });
  }
}

/** What a queue's owner answers; null where it does not. */
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

function replicaOf({ id, version, started, endpoints }: ServiceStats) {
  return {
    id,
    version,
    started,
    endpoints: endpoints.map((endpoint) => ({
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
