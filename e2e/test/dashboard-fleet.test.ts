import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { afterAll, beforeAll } from "@jest/globals";
import { describeInBrowser } from "../src/browser/describe-in-browser.ts";
import { longList } from "./dashboard/limits.suite.ts";
import { outage } from "./dashboard/outage.suite.ts";
import { reference } from "./dashboard/reference.suite.ts";
import { savedViews } from "./dashboard/saved-views.suite.ts";
import { session } from "./dashboard/session.suite.ts";
import { allViews } from "./dashboard/views.suite.ts";
import { workForDevices } from "./dashboard/work.suite.ts";

describeInBrowser("the dashboard of a fleet", (browser) => {
  let mesh: TestMesh;
  beforeAll(async () => {
    mesh = await startMesh();
  }, 120_000);
  afterAll(async () => await mesh?.stop(), 60_000);

  for (const suite of [session, allViews, workForDevices, savedViews, outage, longList, reference])
    suite(browser, () => mesh);
});
