import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { type SmtpSink, startSmtpSink } from "@devmesh/testkit/smtp-sink";
import { afterAll, beforeAll } from "@jest/globals";
import { describeInBrowser } from "../src/browser/describe-in-browser.ts";
import { alerts } from "./dashboard/alerts.suite.ts";
import { connectDevice } from "./dashboard/connect.suite.ts";
import { newUser } from "./dashboard/journey.suite.ts";
import { firstLoad } from "./dashboard/limits.suite.ts";
import { session } from "./dashboard/session.suite.ts";
import { workForDevices } from "./dashboard/work.suite.ts";

/* The first suites need an empty mesh. More pages are in dashboard-pages.test.ts, all views in attack.test.ts. */
describeInBrowser("the dashboard", (browser) => {
  let mesh: TestMesh;
  let mailServer: SmtpSink;
  beforeAll(async () => {
    mailServer = await startSmtpSink();
    mesh = await startMesh({ env: { SMTP_URL: mailServer.url } });
  }, 120_000);
  afterAll(async () => {
    await mesh?.stop();
    await mailServer?.stop();
  });

  firstLoad(browser, () => mesh);
  newUser(
    browser,
    () => mesh,
    () => mailServer,
  );
  for (const suite of [connectDevice, session, workForDevices, alerts]) suite(browser, () => mesh);
});
