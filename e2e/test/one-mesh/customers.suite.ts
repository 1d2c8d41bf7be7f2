import type { TestMesh } from "@devmesh/testkit/mesh";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { invitationsTo } from "../../src/outbox.ts";
import { asAnyone, asMaster, registerCustomer } from "../../src/tenant.ts";

/** Registration, confirmation and removal of customers. */
export function customers(shared: () => TestMesh): void {
  describe("customers", () => {
    let mesh: TestMesh;
    beforeAll(async () => {
      mesh = shared();
    });

    test("the answer to a registration does not tell a known address from an unknown one", async () => {
      const ask = () => asAnyone(mesh).get("/newcustomer?email=known@example.com");
      const first = await ask();
      const second = await ask();
      expect([first.status, first.text]).toEqual([202, second.text]);
    });

    test("a second invitation brings the same token, and the fourth within an hour is not sent", async () => {
      const { token } = await registerCustomer(mesh, "often@example.com");
      for (let round = 0; round < 5; round++) {
        await asAnyone(mesh).get("/newcustomer?email=%20Often@example.com%20");
      }
      await registerCustomer(mesh, "marker@example.com");
      const mails = await invitationsTo(mesh.dataDir, "often@example.com");
      expect(mails.length).toBe(3);
      expect(new Set(mails.map((mail) => mail.token))).toEqual(new Set([token]));
    });

    test.each([
      "",
      "email=",
      "email=nobody",
      "email=a@b@c",
      "email=a@example.com&email=b@example.com",
      `email=${"x".repeat(250)}@example.com`,
    ])("a malformed address is refused: %s", async (query) => {
      expect((await asAnyone(mesh).get(`/newcustomer?${query}`)).status).toBe(400);
    });

    test("the token works at once and its first use confirms; the link confirms and may be followed twice", async () => {
      const byToken = await registerCustomer(mesh, "token@example.com");
      await byToken.asCustomer.get("customer");
      expect((await byToken.asCustomer.get("customer")).json.confirmed_at).toEqual(expect.any(String));
      const byLink = await registerCustomer(mesh, "link@example.com");
      for (let round = 0; round < 2; round++) expect((await fetch(byLink.link)).status).toBe(200);
      expect((await fetch(`${byLink.link}x`)).status).toBe(404);
    });

    test("a master key lists customers without their tokens and deletes them, token and all", async () => {
      const leaver = await registerCustomer(mesh, "leaver@example.com");
      const listed = await asMaster(mesh).get("customers");
      const entry = listed.json.find(
        (customer: { email: string }) => customer.email === "leaver@example.com",
      );
      expect(entry).not.toHaveProperty("token");
      expect(listed.text).not.toContain(leaver.token);
      expect((await asMaster(mesh).delete(`customers/${entry.id}`)).status).toBe(204);
      expect((await leaver.asCustomer.get("customer")).status).toBe(401);
    });

    test("meta is replaced whole, kept under 16 KB, and nothing else can be changed", async () => {
      const { asCustomer } = await registerCustomer(mesh, "meta@example.com");
      await asCustomer.post("customer", { meta: { a: 1 } });
      expect((await asCustomer.post("customer", { meta: { b: 2 } })).json.meta).toEqual({ b: 2 });
      expect((await asCustomer.post("customer", { meta: { text: "x".repeat(17_000) } })).status).toBe(413);
      expect((await asCustomer.post("customer", { meta: 5 })).status).toBe(400);
      const changed = await asCustomer.post("customer", { email: "other@example.com", meta: {} });
      expect([changed.status, changed.json.errors[0].pointer]).toEqual([400, "/email"]);
      expect((await asCustomer.get("customer")).json.meta).toEqual({ b: 2 });
    });
  });
}
