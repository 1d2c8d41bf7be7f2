import { type FacetValue, maxFacetValues } from "@devmesh/contracts/model/device-facets";

/** The values of a facet. */
export interface FacetCount {
  /** The most frequent ones, then in the order of their texts; null is the first. */
  readonly values: readonly FacetValue[];
  /** Sum of the counts of the others. */
  readonly others: number;
}

/** Lists the most frequent of all values and adds the others up. `total`: the sum where not all are in `counted`. */
export function cutFacet(counted: readonly FacetValue[], total = sumOf(counted)): FacetCount {
  const values = counted
    .toSorted((one, other) => other.count - one.count || ((one.value ?? "") < (other.value ?? "") ? -1 : 1))
    .slice(0, maxFacetValues);
  // Devices may have changed since the total was counted.
  return { values, others: Math.max(0, total - sumOf(values)) };
}

function sumOf(values: readonly FacetValue[]): number {
  return values.reduce((sum, { count }) => sum + count, 0);
}
