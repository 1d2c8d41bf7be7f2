import type { TestMesh } from "@devmesh/testkit/mesh";
import type { SmtpSink } from "@devmesh/testkit/smtp-sink";
import { expect, test } from "@jest/globals";
import { restClient } from "../../src/rest-client.ts";
import { asAnyone } from "../../src/tenant.ts";

/** Mail through the SMTP server `post` of the mesh. */
export function invitation(shared: () => TestMesh, post: () => SmtpSink): void {
  test("with SMTP_URL the invitation is delivered, also when the server refuses at first", async () => {
    const [mesh, sink] = [shared(), post()];
    let attempts = 0;
    sink.behave(() => (++attempts === 1 ? { refuse: 451 } : "accept"));
    await asAnyone(mesh).get("/newcustomer?email=smtp@example.com");
    const { content } = await sink.awaitMail((mail) => mail.to.includes("smtp@example.com"), 20_000);
    const token = /ck_[0-9A-Za-z]{32}/.exec(content.text ?? "")?.[0] ?? "";
    expect(content.html).toContain(token);
    expect((await restClient(mesh.url, token).get("customer")).json.email).toBe("smtp@example.com");
    expect(attempts).toBeGreaterThan(1);
  });
}
