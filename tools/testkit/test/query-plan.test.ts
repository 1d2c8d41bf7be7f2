import { expect, test } from "@jest/globals";
import { readQueryPlan } from "../src/query-plan.ts";

const explained = (winningPlan: object) => ({
  queryPlanner: {
    winningPlan,
    rejectedPlans: [{ stage: "FETCH", inputStage: { stage: "IXSCAN", indexName: "rejected" } }],
  },
});

test.each([
  [
    "an index scan",
    { stage: "FETCH", inputStage: { stage: "IXSCAN", indexName: "by_size", direction: "forward" } },
    { indexes: ["by_size"], scansCollection: false, sorts: false },
  ],
  [
    "a scan of the collection that is sorted",
    { stage: "SORT", inputStage: { stage: "COLLSCAN", direction: "forward" } },
    { indexes: [], scansCollection: true, sorts: true },
  ],
  [
    "two indexes, told by the newer engine",
    {
      isCached: false,
      queryPlan: {
        stage: "OR",
        inputStages: [
          { stage: "IXSCAN", indexName: "b" },
          { stage: "IXSCAN", indexName: "a" },
        ],
      },
      slotBasedPlan: { slots: "$$RESULT", stages: "…" },
    },
    { indexes: ["a", "b"], scansCollection: false, sorts: false },
  ],
  ["a look-up by _id", { stage: "IDHACK" }, { indexes: ["_id_"], scansCollection: false, sorts: false }],
  [
    "a look-up on the short way",
    { stage: "EXPRESS_IXSCAN", keyPattern: "{ email: 1 }", indexName: "one_of_address" },
    { indexes: ["one_of_address"], scansCollection: false, sorts: false },
  ],
])("MongoDB's plan of %s is read", (_what, winningPlan, plan) => {
  expect(readQueryPlan(explained(winningPlan))).toEqual(plan);
});

test("PostgreSQL's plan is read without the indexes that were only weighed", () => {
  const scan = { "Node Type": "Bitmap Index Scan", "Index Name": "by_size" };
  const heap = { "Node Type": "Bitmap Heap Scan", Plans: [scan] };
  const Plan = {
    "Node Type": "Custom Scan",
    IndexCosts: [{ indexName: "_id_", totalCost: 4.18 }],
    IndexDetails: [{ indexName: "by_size", isMultiKey: false }],
    Plans: [{ "Node Type": "Sort", Plans: [heap] }],
  };
  expect(readQueryPlan({ queryPlanner: { Plan } })).toEqual({
    indexes: ["by_size"],
    scansCollection: false,
    sorts: true,
  });
  const whole = { queryPlanner: { Plan: { "Node Type": "Seq Scan" } } };
  expect(readQueryPlan(whole)).toEqual({ indexes: [], scansCollection: true, sorts: false });
});
