import type { FleetSummary } from "@devmesh/contracts/model/fleet";
import type { MeshState, ReplicaFigures } from "@devmesh/contracts/model/mesh-state";
import {
  type Activity,
  activityBetween,
  activityTogether,
  type Counters,
  countersTogether,
} from "./activity.ts";

/** An endpoint of one replica, or of all replicas of a service. */
interface ObservedEndpoint {
  readonly name: string;
  /** Since the replicas were started. */
  readonly counters: Counters;
  /** Null until two readings have it. */
  readonly activity: Activity | null;
}

/** A replica in the last reading that had it. */
export interface ObservedReplica {
  readonly id: string;
  readonly version: string;
  readonly started: string;
  /** Time of the reading that it was last in. */
  readonly heardAt: string;
  /** Whether the newest reading has it. */
  readonly answers: boolean;
  readonly endpoints: readonly ObservedEndpoint[];
  readonly activity: Activity | null;
  readonly figures: ReplicaFigures;
  /** Growth of the figures a second; empty until two readings have the replica. */
  readonly growth: Partial<Record<keyof ReplicaFigures, number>>;
}

/** A service of the mesh; it is missing if no replica responds. */
export interface ObservedService {
  readonly name: string;
  /** A process of it is connected and does not answer. */
  readonly hangs: boolean;
  /** The oldest first, those that lately ceased to answer among them. */
  readonly replicas: readonly ObservedReplica[];
  /** Of the replicas that answer, together. */
  readonly endpoints: readonly ObservedEndpoint[];
  readonly activity: Activity | null;
}

/** Whether a replica of a service answers, and none hangs. */
export function isWell({ hangs, replicas }: Pick<ObservedService, "hangs" | "replicas">): boolean {
  return !hangs && replicas.some(({ answers }) => answers);
}

/** The state of the mesh from successive readings. */
export interface MeshObservation {
  /** Time of the newest reading. */
  readonly at: string;
  readonly services: readonly ObservedService[];
  readonly queues: MeshState["queues"];
  /** All devices in numbers, of the last reading that had them; null before it. */
  readonly fleet: FleetSummary | null;
}

/** Time for which a replica without a response is kept, in milliseconds. */
export const rememberedMs = 60_000;

/** Adds a reading to an observation, which always has the services of `expected`. */
export function observe(
  before: MeshObservation | null,
  { timestamp, services, hanging = [], queues, fleet }: MeshState,
  expected: readonly string[],
): MeshObservation {
  const found = new Map(services.map(({ name, replicas }) => [name, replicas]));
  const earlier = new Map(before?.services.map(({ name, replicas }) => [name, replicas]));
  const names = [...new Set([...expected, ...found.keys(), ...earlier.keys(), ...hanging])].sort();
  return {
    at: timestamp,
    queues,
    fleet: fleet ?? before?.fleet ?? null,
    services: names
      .map((name) => ({
        ...observeService(name, earlier.get(name) ?? [], found.get(name) ?? [], timestamp),
        hangs: hanging.includes(name),
      }))
      .filter(({ name, replicas }) => replicas.length > 0 || expected.includes(name)),
  };
}

type ReplicaReport = MeshState["services"][number]["replicas"][number];

function observeService(
  name: string,
  earlier: readonly ObservedReplica[],
  found: readonly ReplicaReport[],
  at: string,
): Omit<ObservedService, "hangs"> {
  const known = new Map(earlier.map((replica) => [replica.id, replica]));
  const answering = found.map((replica) => observeReplica(known.get(replica.id), replica, at));
  const present = new Set(found.map(({ id }) => id));
  const silent = earlier
    .filter(({ id, heardAt }) => !present.has(id) && msBetween(heardAt, at) < rememberedMs)
    .map((replica) => ({ ...replica, answers: false, activity: null, figures: {}, growth: {} }));
  return {
    name,
    replicas: [...answering, ...silent].sort(byAge),
    endpoints: endpointsTogether(answering),
    activity: activityTogether(answering.map(({ activity }) => activity)),
  };
}

function observeReplica(
  before: ObservedReplica | undefined,
  replica: ReplicaReport,
  at: string,
): ObservedReplica {
  const { id, release, started, figures } = replica;
  const ms = before === undefined ? 0 : msBetween(before.heardAt, at);
  // One reading serves all requests within a second, so the same one can come twice.
  if (before?.answers && ms === 0) return before;
  const earlier = new Map(before?.endpoints.map(({ name, counters }) => [name, counters]));
  const endpoints = replica.endpoints.map(({ name, requests, errors, total_ms }) => {
    const counters = { requests, errors, total_ms };
    const counted = earlier.get(name);
    // Clocks of two gateways can differ by more than lies between their readings.
    const activity = counted === undefined || ms <= 0 ? null : activityBetween(counted, counters, ms);
    return { name, counters, activity };
  });
  const activity = activityTogether(endpoints.map((endpoint) => endpoint.activity));
  const growth = growthOf(before, figures, ms);
  return {
    id,
    version: release ?? "unknown",
    started,
    heardAt: at,
    answers: true,
    endpoints,
    activity,
    figures,
    growth,
  };
}

function growthOf(before: ObservedReplica | undefined, figures: ReplicaFigures, ms: number) {
  const growth: Partial<Record<keyof ReplicaFigures, number>> = {};
  if (before === undefined || ms <= 0) return growth;
  for (const name of Object.keys(figures) as (keyof ReplicaFigures)[]) {
    const [earlier, now] = [before.figures[name], figures[name]];
    // Counts only grow: a lower one began again.
    if (earlier !== undefined && now !== undefined)
      growth[name] = ((now < earlier ? now : now - earlier) * 1_000) / ms;
  }
  return growth;
}

/** What the mesh does now; each is null while it is not known. */
export interface MeshFigures {
  readonly recordsPerSecond: number | null;
  readonly loginsPerSecond: number | null;
  readonly refusedPerSecond: number | null;
  readonly deviceCallsPerSecond: number | null;
  readonly devicesOnline: number | null;
  readonly storedBytes: number | null;
}

/** The figures of all replicas together. */
export function figuresTogether({ services }: MeshObservation): MeshFigures {
  const replicas = services.flatMap((service) => service.replicas);
  const sum = (values: readonly number[]) => (values.length === 0 ? null : values.reduce((a, b) => a + b));
  // Each replica of a service knows the same of these.
  const newest = (name: keyof ReplicaFigures) => {
    const values = replicas.flatMap(({ figures }) => figures[name] ?? []);
    return values.length === 0 ? null : Math.max(...values);
  };
  const perSecond = (name: keyof ReplicaFigures) => sum(replicas.flatMap(({ growth }) => growth[name] ?? []));
  const bridge = services.find(({ name }) => name === "rpc-bridge");
  const calls = bridge?.endpoints.find(({ name }) => name === "call");
  return {
    recordsPerSecond: perSecond("records_stored"),
    loginsPerSecond: perSecond("logins"),
    refusedPerSecond: perSecond("logins_refused"),
    deviceCallsPerSecond: calls?.activity?.requestsPerSecond ?? null,
    devicesOnline: newest("devices_online"),
    storedBytes: newest("stored_bytes"),
  };
}

function endpointsTogether(replicas: readonly ObservedReplica[]): ObservedEndpoint[] {
  const byName = Map.groupBy(
    replicas.flatMap(({ endpoints }) => endpoints),
    ({ name }) => name,
  );
  return [...byName].map(([name, endpoints]) => ({
    name,
    counters: countersTogether(endpoints.map(({ counters }) => counters)),
    activity: activityTogether(endpoints.map(({ activity }) => activity)),
  }));
}

function byAge(one: ObservedReplica, other: ObservedReplica): number {
  return Date.parse(one.started) - Date.parse(other.started) || (one.id < other.id ? -1 : 1);
}

function msBetween(one: string, other: string): number {
  return Date.parse(other) - Date.parse(one);
}
