import { recordSpan, type SpanDescription, type Tracer } from "./tracer.ts";

/** How the spans of a store name it. */
export interface TracedStoreOptions {
  readonly system: "sqlite" | "mongodb";
  /** What the store holds, such as `devices`. */
  readonly collection: string;
}

/**
 * The store, which records a span for each method that is called while a traced call, event or job runs. What a
 * service does by itself, such as a sweep, begins no trace.
 */
export function traceStore<S extends object>(
  tracer: Tracer | undefined,
  store: S,
  { system, collection }: TracedStoreOptions,
): S {
  if (tracer === undefined) return store;
  const traced = (name: string, method: TracedMethod): TracedMethod => {
    const description: SpanDescription = {
      name: `${name} ${collection}`,
      kind: "client",
      attributes: {
        "db.system.name": system,
        "db.operation.name": name,
        "db.collection.name": collection,
      },
    };
    return (...given) =>
      tracer.active === undefined
        ? method(...given)
        : recordSpan(tracer, description, tracer.active, () => method(...given));
  };
  const members = Object.entries(store).map(([name, member]) => [
    name,
    typeof member === "function" ? traced(name, member.bind(store)) : member,
  ]);
  return Object.fromEntries(members);
}

type TracedMethod = (...given: unknown[]) => Promise<unknown>;
