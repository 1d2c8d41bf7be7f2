import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { type SmtpSink, startSmtpSink } from "@devmesh/testkit/smtp-sink";
import { afterAll, beforeAll } from "@jest/globals";
import { describeInBrowser } from "../src/browser/describe-in-browser.ts";
import { connectDevice } from "./dashboard/connect.suite.ts";
import { newUser } from "./dashboard/journey.suite.ts";
import { firstLoad } from "./dashboard/limits.suite.ts";

describeInBrowser("the dashboard of an empty mesh", (browser) => {
  let mesh: TestMesh;
  let mailServer: SmtpSink;
  beforeAll(async () => {
    mailServer = await startSmtpSink();
    mesh = await startMesh({ env: { SMTP_URL: mailServer.url } });
  }, 120_000);
  afterAll(async () => {
    await mesh?.stop();
    await mailServer?.stop();
  }, 60_000);

  firstLoad(browser, () => mesh);
  newUser(
    browser,
    () => mesh,
    () => mailServer,
  );
  connectDevice(browser, () => mesh);
});
