import type { ContractDeclaration, EventsDeclaration, QueueDeclaration } from "./contract.ts";

/** Methods of one contract that a service may call. */
export interface Dependency<C extends ContractDeclaration = ContractDeclaration> {
  readonly contract: C;
  readonly methods: readonly (keyof C["methods"] & string)[];
}

/** Events of another service that a service listens to. */
export interface EventSubscription<E extends EventsDeclaration = EventsDeclaration> {
  readonly events: E;
  readonly names: readonly (keyof E["events"] & string)[];
}

/** Rights outside the contracts; device-broker's `permissions.ts` turns each into subjects. */
type BrokerRight =
  /** Answers nats-server's auth callout for MQTT logins. */
  | "auth_callout"
  /** Asks all services how they do (`$SRV.STATS`, ADR 5). */
  | "discovery"
  /** Keeps the course of the mesh and its last changes in the streams `HISTORY` and `CHANGES`. */
  | "history"
  /** Makes the stream `WEBHOOKS` out of that of events, with a consumer for each webhook, and keeps dead letters. */
  | "event_outbox"
  /** Reads CONNECT and DISCONNECT of account DEVICES, asks servers for their connections, closes one. */
  | "device_connections"
  /** In account DEVICES: pulls and acknowledges the records that devices publish. */
  | "device_data"
  /** In account DEVICES: talks MQTT to devices, pulls their shadow and event messages, sets up the broker's streams. */
  | "device_topics";

/**
 * What one service serves, calls, publishes, subscribes to and runs with. Its NATS permissions are exactly this (ADR
 * 2), and its deployments are generated from it or checked against it.
 */
export interface ServiceDeclaration {
  readonly serves: ContractDeclaration | null;
  readonly calls: readonly Dependency[];
  readonly publishes: EventsDeclaration | null;
  readonly subscribes: readonly EventSubscription[];
  /** Events read from their stream, in order and with replay. No live ones. */
  readonly follows: readonly EventSubscription[];
  readonly produces: readonly QueueDeclaration[];
  readonly consumes: readonly QueueDeclaration[];
  readonly rights: readonly BrokerRight[];
  /** Its store: SQLite on a volume of this size, or a database of MongoDB. Null: keeps nothing. */
  readonly store: { readonly volumeGib: number } | null;
  /** Limit of its container, in MiB. */
  readonly memoryMib: number;
  /** Port of its HTTP for clients, in a container. */
  readonly httpPort: number | null;
  /** TCP ports of servers outside the mesh that it connects to; `public`: any port of public addresses. */
  readonly reaches: readonly number[] | "public";
}

/** Checks the method names against the contract and keeps them as literal types. */
export function calls<
  const C extends ContractDeclaration,
  const M extends readonly (keyof C["methods"] & string)[],
>(contract: C, methods: M) {
  return { contract, methods };
}

type DependencyOn<D extends Dependency, S> = Extract<D, { readonly contract: { readonly service: S } }>;
type ServiceOf<D extends Dependency> = D["contract"]["service"];

/** One dependency for each service that `D` names, with all its methods. */
type MergedCalls<D extends Dependency> = readonly {
  readonly [S in ServiceOf<D>]: {
    readonly contract: DependencyOn<D, S>["contract"];
    readonly methods: readonly DependencyOn<D, S>["methods"][number][];
  };
}[ServiceOf<D>][];

/** Merges dependencies on the same contract into one. */
export function mergeCalls<const D extends Dependency>(dependencies: readonly D[]): MergedCalls<D> {
  const byContract = Map.groupBy(dependencies, ({ contract }) => contract);
  return [...byContract].map(([contract, same]) => ({
    contract,
    methods: [...new Set(same.flatMap(({ methods }) => methods))],
  })) as unknown as MergedCalls<D>;
}

/** Checks the event names against the declaration and keeps them as literal types. */
export function subscribesTo<
  const E extends EventsDeclaration,
  const N extends readonly (keyof E["events"] & string)[],
>(events: E, names: N) {
  return { events, names };
}

const nothing = {
  serves: null,
  calls: [],
  publishes: null,
  subscribes: [],
  follows: [],
  produces: [],
  consumes: [],
  rights: [],
  store: null,
  memoryMib: 512,
  httpPort: null,
  reaches: [],
} as const satisfies ServiceDeclaration;

/** Declares a service and keeps its literal types; what is left out is nothing. */
export function defineService<const S extends Partial<ServiceDeclaration>>(
  service: S,
): Omit<typeof nothing, keyof S> & S {
  return { ...nothing, ...service };
}
