import { z } from "zod";

/** What devices are counted by. */
export const facetNames = ["version", "label", "problem"] as const;
export type FacetName = (typeof facetNames)[number];

/** Values of one facet that are listed, the most frequent. */
export const maxFacetValues = 100;

const count = z.int().min(0);

const FacetValue = z
  .object({
    value: z
      .string()
      .nullable()
      .describe("The version, label or problem; null for devices without a version."),
    count: count.describe("Number of devices that have it."),
  })
  .meta({ id: "FacetValue", description: "A value of a facet and how many devices have it." });
export type FacetValue = z.infer<typeof FacetValue>;

/** How many devices meet a condition, by facet. */
export const DeviceFacets = z
  .object({
    total: count.describe("Number of devices that meet the condition."),
    facets: z
      .partialRecord(z.enum(facetNames), z.array(FacetValue))
      .describe(
        `The values of each facet that was asked for, the most frequent first; at most ${maxFacetValues}.`,
      ),
    others: z
      .partialRecord(z.enum(facetNames), count)
      .describe("The sum of the counts of the values that are not listed, for each facet."),
  })
  .meta({
    id: "DeviceFacets",
    description: "How many devices meet a condition, by the values of facets.",
    example: {
      total: 200,
      facets: {
        version: [
          { value: "1.4.2", count: 187 },
          { value: null, count: 13 },
        ],
      },
      others: { version: 0 },
    },
  });
export type DeviceFacets = z.infer<typeof DeviceFacets>;
