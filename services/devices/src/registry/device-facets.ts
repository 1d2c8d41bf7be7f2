import type { devices } from "@devmesh/contracts/devices";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import { type DeviceFacets, type FacetName, facetNames } from "@devmesh/contracts/model/device-facets";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { wordOf } from "../diagnostics/diagnosis-history.ts";
import type { DeviceStore, ListedDevice } from "../store/device-store.ts";
import { cutFacet, type FacetCount } from "../store/facet-count.ts";
import type { DeviceListOptions } from "./device-list.ts";
import { selectBy } from "./device-selection.ts";

export interface DeviceFacetsOptions extends DeviceListOptions {
  readonly store: Pick<DeviceStore, "count" | "countBy">;
}

/** A device, by its values of a facet. */
type ValuesOf = (listed: ListedDevice) => readonly (string | null)[];

/** Counts by the indexes of the store where they decide, else by a walk over the devices. */
export function createFacetDevices(
  options: DeviceFacetsOptions,
): Implementation<typeof devices>["facetDevices"] {
  const { store, walk, diagnostics } = options;

  const valuesOf: Readonly<Record<FacetName, ValuesOf>> = {
    version: ({ version }) => [version],
    label: ({ labels }) => [...new Set(labels)],
    problem: ({ id, created_at }) => diagnostics.problemsOf(id, created_at).map(wordOf),
  };

  return async ({ where, facets: names }, ctx) => {
    const asked = facetNames.filter((name) => names.includes(name));

    /** Walks the devices that meet the condition, of these ids alone where they are given. */
    async function tally(counting: readonly FacetName[], ids?: readonly string[]) {
      const counts = new Map(counting.map((name) => [name, new Map<string | null, number>()]));
      let total = 0;
      for await (const portion of walk.devices(selectBy(where, options, ids), {}, ctx)) {
        total += portion.length;
        for (const [name, ofFacet] of counts) {
          for (const value of portion.flatMap(valuesOf[name]))
            ofFacet.set(value, (ofFacet.get(value) ?? 0) + 1);
        }
      }
      const facets = [...counts].map(([name, ofFacet]) => {
        const values = [...ofFacet].map(([value, count]) => ({ value, count }));
        return [name, cutFacet(values)] as const;
      });
      return { total, facets };
    }

    async function idsWith(problem: DeviceCondition["problem"]): Promise<string[]> {
      const ids: string[] = [];
      for await (const portion of walk.devices(selectBy({ problem }, options), {}, ctx))
        ids.push(...portion.map(({ id }) => id));
      return ids;
    }

    const { problem, ...others } = where;
    const beside = selectBy(others, options).counted;
    if (beside === null) return described(await tally(asked));
    // Few devices have a problem: the store counts all others without a walk.
    const without = problem?.not_in === undefined ? [] : await idsWith({ in: problem.not_in });
    const counted = {
      ...beside,
      ...(problem?.in && { ids: await idsWith({ in: problem.in }) }),
      ...(without.length > 0 && { noIds: without }),
    };
    const total = await store.count(counted, ctx.signal);
    const facets = await Promise.all(
      asked.map(async (name) => {
        if (name !== "problem") return [name, await store.countBy(name, counted, ctx.signal)] as const;
        const troubled = await tally([name], diagnostics.devicesWithProblem("any"));
        return [name, troubled.facets[0]?.[1] ?? { values: [], others: 0 }] as const;
      }),
    );
    return described({ total, facets });
  };
}

function described({
  total,
  facets,
}: {
  readonly total: number;
  readonly facets: readonly (readonly [FacetName, FacetCount])[];
}): DeviceFacets {
  return {
    total,
    facets: Object.fromEntries(facets.map(([name, { values }]) => [name, [...values]])),
    others: Object.fromEntries(facets.map(([name, { others }]) => [name, others])),
  };
}
