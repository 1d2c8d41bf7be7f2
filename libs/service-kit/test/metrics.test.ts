import { describe, expect, test } from "@jest/globals";
import { createMetrics } from "../src/metrics.ts";

interface Described {
  readonly name: string;
  readonly type: unknown;
  readonly help: string;
}

/** What Prometheus' own linter holds against a name; its whole list is longer. */
function complaints({ name, type, help }: Described): string[] {
  return [
    ...(/^[a-z][a-z0-9_]*$/.test(name) ? [] : ["is not in snake case"]),
    ...(help === "" ? ["has no help"] : []),
    ...(type === "counter" && !name.endsWith("_total") ? ["is a counter without _total"] : []),
    ...(type !== "counter" && /_(total|count|sum|bucket)$/.test(name) ? ["is named like another type"] : []),
    ...(/_(ms|milliseconds|minutes|kb|mb|percent)(_|$)/.test(name) ? ["is not in a base unit"] : []),
  ].map((complaint) => `${name} ${complaint}`);
}

describe("the metrics of a service", () => {
  test("are named as Prometheus asks, those of the process too", async () => {
    const described = await createMetrics({ processMetrics: true }).registry.getMetricsAsJSON();
    expect(described.map(({ name }) => name)).toContain("nodejs_eventloop_lag_seconds");
    expect(described.flatMap(complaints)).toEqual([]);
  });
});
