import type { MeshMinute } from "@devmesh/contracts/model/mesh-history";
import type { MeshState, ReplicaFigures } from "@devmesh/contracts/model/mesh-state";

type ReplicaState = MeshState["services"][number]["replicas"][number];
type Count = (replica: ReplicaState) => number | undefined;

const figure =
  (name: keyof ReplicaFigures): Count =>
  ({ figures }) =>
    figures[name];

const deviceCalls: Count = ({ endpoints }) => endpoints.find(({ name }) => name === "call")?.requests;

/** What happened between two readings of the mesh; rates are null where no service counts, or without a `before`. */
export function minuteBetween(before: MeshState | null, now: MeshState, at: Date): MeshMinute {
  const { data, rpc_bridge } = now.queues;
  const online = replicasOf(now).flatMap(({ figures }) => figures.devices_online ?? []);
  return {
    at: at.toISOString(),
    devices_online: online.length === 0 ? null : Math.max(...online),
    records: rateOf(figure("records_stored"), before, now),
    logins: rateOf(figure("logins"), before, now),
    logins_refused: rateOf(figure("logins_refused"), before, now),
    device_calls: rateOf(deviceCalls, before, now, "rpc-bridge"),
    waiting: data === null || rpc_bridge === null ? null : data + rpc_bridge,
  };
}

/** A reading whose services that do not answer have what waited last: they handle nothing, so it is the least. */
export function withKnownQueues(before: MeshState | null, now: MeshState): MeshState {
  const { data, rpc_bridge, ...queues } = now.queues;
  return {
    ...now,
    queues: {
      ...queues,
      data: data ?? before?.queues.data ?? null,
      rpc_bridge: rpc_bridge ?? before?.queues.rpc_bridge ?? null,
    },
  };
}

function replicasOf(state: MeshState, service?: string): readonly ReplicaState[] {
  return state.services
    .filter(({ name }) => service === undefined || name === service)
    .flatMap(({ replicas }) => replicas);
}

/** How much a count of all replicas grew a second, to the hundredth. */
function rateOf(count: Count, before: MeshState | null, now: MeshState, service?: string): number | null {
  if (before === null) return null;
  const seconds = (Date.parse(now.timestamp) - Date.parse(before.timestamp)) / 1_000;
  const countingIn = (state: MeshState) =>
    replicasOf(state, service).filter((replica) => count(replica) !== undefined);
  const counting = countingIn(now);
  if (counting.length === 0 || seconds <= 0) return null;
  const counted = new Map(countingIn(before).map((replica) => [replica.id, count(replica)]));
  const growth = counting.reduce((sum, replica) => {
    // A replica that is new has counted since its start; one that did not answer before has an unknown past.
    const started = Date.parse(replica.started) >= Date.parse(before.timestamp);
    const value = count(replica) ?? 0;
    const earlier = counted.get(replica.id) ?? (started ? 0 : value);
    return sum + Math.max(0, value - earlier);
  }, 0);
  return Math.round((growth / seconds) * 100) / 100;
}
