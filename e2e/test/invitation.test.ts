import { startMesh } from "@devmesh/testkit/mesh";
import { startSmtpSink } from "@devmesh/testkit/smtp-sink";
import { expect, test } from "@jest/globals";
import { restClient } from "../src/rest-client.ts";
import { asAnyone } from "../src/tenant.ts";

test("with SMTP_URL the invitation is delivered, also when the server refuses at first", async () => {
  await using sink = await startSmtpSink();
  const mailing = await startMesh({ env: { SMTP_URL: sink.url } });
  try {
    sink.behave(({ number }) => (number === 1 ? { refuse: 451 } : "accept"));
    await asAnyone(mailing).get("/newcustomer?email=smtp@example.com");
    const { content } = await sink.awaitMail((mail) => mail.to.includes("smtp@example.com"), 20_000);
    const token = /ck_[0-9A-Za-z]{32}/.exec(content.text ?? "")?.[0] ?? "";
    expect(content.html).toContain(token);
    expect((await restClient(mailing.url, token).get("customer")).json.email).toBe("smtp@example.com");
  } finally {
    await mailing.stop();
  }
}, 60_000);
