import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll } from "@jest/globals";
import { describeInBrowser } from "../src/browser/describe-in-browser.ts";
import { boards } from "./dashboard/boards.suite.ts";
import { longCharts } from "./dashboard/charts.suite.ts";
import { longList } from "./dashboard/limits.suite.ts";
import { outage } from "./dashboard/outage.suite.ts";
import { reference } from "./dashboard/reference.suite.ts";
import { savedViews } from "./dashboard/saved-views.suite.ts";
import { webhooks } from "./dashboard/webhooks.suite.ts";

/* The pages that the first hour in dashboard.test.ts does not need. */
describeInBrowser("pages of the dashboard", (browser) => {
  let mesh: TestMesh;
  beforeAll(async () => {
    mesh = await startMesh();
  }, 120_000);
  afterAll(async () => await mesh?.stop());

  for (const suite of [webhooks, longCharts, boards, savedViews, outage, longList, reference])
    suite(browser, () => mesh);
});
