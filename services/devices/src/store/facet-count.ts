import { type FacetValue, maxFacetValues } from "@devmesh/contracts/model/device-facets";

/** The values of a facet. */
export interface FacetCount {
  /** The most frequent ones, then in the order of their texts; null is the first. */
  readonly values: readonly FacetValue[];
  /** Sum of the counts of the others. */
  readonly others: number;
}

/** Lists the most frequent of all values and adds the others up. */
export function cutFacet(counted: readonly FacetValue[]): FacetCount {
  const sorted = counted.toSorted(
    (one, other) => other.count - one.count || ((one.value ?? "") < (other.value ?? "") ? -1 : 1),
  );
  const others = sorted.slice(maxFacetValues).reduce((sum, { count }) => sum + count, 0);
  return { values: sorted.slice(0, maxFacetValues), others };
}
