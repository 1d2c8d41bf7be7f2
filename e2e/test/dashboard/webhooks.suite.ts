import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectNats } from "@devmesh/testkit/nats-connection";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { viewFaults } from "../../src/browser/view-faults.ts";
import { type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { asMaster } from "../../src/tenant.ts";

/** A webhook to a receiver on this machine. None is left in the mesh. */
export function webhooks(browser: () => Browser, shared: () => TestMesh): void {
  describe("webhooks in the dashboard", () => {
    let mesh: TestMesh;
    let visit: Visit;
    let page: Page;
    let status = 204;
    /** Types of the events that were sent. */
    const received: string[] = [];
    const receiver = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        received.push(JSON.parse(Buffer.concat(chunks).toString()).type);
        response.writeHead(status).end();
      });
    });

    beforeAll(async () => {
      mesh = shared();
      await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
      visit = await visitDashboard(browser(), mesh);
      page = visit.page;
      await page.goto("/webhooks");
      await visit.signIn(mesh.masterKey);
    });
    afterAll(async () => {
      await visit?.[Symbol.asyncDispose]();
      const master = asMaster(mesh);
      for (const { id } of (await master.get("webhooks")).json) await master.delete(`webhooks/${id}`);
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    });

    const url = () => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const button = (name: string) => page.getByRole("button", { name, exact: true });

    test("a webhook is created, what is wrong is said at its field, and its secret is shown", async () => {
      await button("New webhook").first().click();
      const dialog = page.getByRole("dialog", { name: "New webhook" });
      await dialog.getByLabel("URL").fill("http://192.168.0.1/");
      await dialog.getByLabel("Name").fill("Bills");
      await dialog.getByLabel("Events").fill("onlin");
      await page.keyboard.press("Tab");
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.getByText("Must be the name of an event.").waitFor();
      await dialog.getByLabel("Events").press("Backspace");
      // The focus leaves the list of events, which covers the button.
      await page.keyboard.press("Tab");
      await dialog.getByRole("button", { name: "Create" }).click();
      await eventually(async () => (await dialog.getByLabel("URL").getAttribute("aria-invalid")) === "true");
      expect(await viewFaults(page)).toEqual([]);
      await dialog.getByLabel("URL").fill(url());
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.getByText(/^whsec_/).waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Done" }).click();
      const row = page.getByRole("table", { name: "Webhooks" }).getByRole("row", { name: /Bills/ });
      await row.getByText("enabled", { exact: true }).waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await row.getByRole("link", { name: "Bills" }).click();
      await page.getByRole("heading", { level: 1, name: "Bills" }).waitFor();
    });

    test("a test says what became of it", async () => {
      await button("Send a test").click();
      await page.getByText(/^It arrived: status 204, in /).waitFor();
      expect(received).toContain("devmesh.test");
      status = 500;
      await button("Send a test").click();
      await page.getByText(/^It did not arrive: .*500/).waitFor();
      status = 204;
      expect(await viewFaults(page)).toEqual([]);
    });

    test("an event that was given up is shown and sent again", async () => {
      const [{ id }] = (await asMaster(mesh).get("webhooks")).json;
      const { passwords } = JSON.parse(await readFile(join(mesh.dataDir, "installation.json"), "utf8"));
      // An event is given up after a day of failures, which no test waits for.
      await using broker = await connectNats({
        port: mesh.ports.nats,
        user: "webhooks.mesh",
        password: passwords.webhooks,
      });
      const event = {
        specversion: "1.0",
        id: "given-up-1",
        source: `${mesh.url}/api/v2`,
        type: "devmesh.offline",
        subject: "lost-pump",
        time: new Date().toISOString(),
        datacontenttype: "application/json",
        data: {},
      };
      const letter = {
        delivery: { event, format: "cloudevents" },
        attempts: 32,
        status: 500,
        error: "status 500",
      };
      await broker.tryPublish(`dead.webhooks.${id}.lost-pump`, JSON.stringify(letter));
      const table = page.getByRole("table", { name: "Events that were given up" });
      await table.getByRole("row", { name: /given-up-1.*lost-pump.*32.*status 500/ }).waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await button("devmesh.offline, given-up-1").click();
      await page.getByRole("dialog", { name: "devmesh.offline" }).getByText("lost-pump").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await page.keyboard.press("Escape");
      received.length = 0;
      await button("Send again given-up-1").click();
      await page.getByText("1 event waits again").waitFor();
      await eventually(() => received.includes("devmesh.offline"));
      await page.getByText("No event was given up").waitFor();
    });

    test("a webhook is changed, disabled, enabled, and its secret is shown and replaced", async () => {
      await button("Change").click();
      const dialog = page.getByRole("dialog", { name: "Change the webhook" });
      await dialog.getByLabel("Events").fill("data");
      await page.keyboard.press("Tab");
      await dialog.getByLabel("Records in a request").fill("50");
      // The session reads no more of the URL, and its end stays as it is.
      expect(await dialog.getByLabel("URL").inputValue()).toBe(`${new URL(url()).origin}/…`);
      await dialog.getByText(/^Its end is a secret/).waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.waitFor({ state: "detached" });
      await page.getByText("50 in a request, after 0 ms").waitFor();
      expect((await asMaster(mesh).get("webhooks")).json).toMatchObject([
        { url: url(), records: { batch: 50 } },
      ]);

      await button("Disable").click();
      await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
      await page.getByText("disabled: by hand").waitFor();
      await button("Enable").click();
      await page.getByText("enabled", { exact: true }).waitFor();

      await button("Show").click();
      await page.getByRole("button", { name: "Copy the secret" }).waitFor();
      await button("Replace").click();
      await button("Replace the secret").click();
      await page.getByText("The secret is replaced. The former one also signs for 24 h.").waitFor();
      await button("Delete").click();
      await button("Delete the webhook").click();
      await page.getByText("No webhooks yet").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      expect(visit.pageErrors).toEqual(noPageErrors);
    });
  });
}
