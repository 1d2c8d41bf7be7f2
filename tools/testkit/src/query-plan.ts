/** How a database would run a query, from `explain`. */
export interface QueryPlan {
  /** Names of the indexes that it looks into. */
  readonly indexes: readonly string[];
  /** Whether it reads the whole collection. */
  readonly scansCollection: boolean;
  /** Whether it sorts results for lack of an index in that order. */
  readonly sorts: boolean;
}

/** Reads the result of `explain` in MongoDB's form, or in PostgreSQL's, which servers on top of that give. */
export function readQueryPlan(explained: object): QueryPlan {
  const { queryPlanner } = explained as { readonly queryPlanner?: { readonly winningPlan?: unknown } };
  const indexes = new Set<string>();
  const stages = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const step = node as Readonly<Record<string, unknown>>;
    for (const stage of [step.stage, step["Node Type"]]) if (typeof stage === "string") stages.add(stage);
    // A look-up by `_id` alone names no index.
    if (step.stage === "IDHACK") indexes.add("_id_");
    for (const index of [step.indexName, step["Index Name"]]) {
      // PostgreSQL's form also lists indexes that it does not use.
      if (typeof index === "string" && ("stage" in step || "Node Type" in step)) indexes.add(index);
    }
    for (const below of Object.values(step)) {
      if (Array.isArray(below)) below.forEach(visit);
      else visit(below);
    }
  };
  visit(queryPlanner?.winningPlan ?? queryPlanner ?? explained);
  return {
    indexes: [...indexes].sort(),
    scansCollection: stages.has("COLLSCAN") || stages.has("Seq Scan"),
    sorts: stages.has("SORT") || stages.has("Sort"),
  };
}
