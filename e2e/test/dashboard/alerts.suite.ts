import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { viewFaults } from "../../src/browser/view-faults.ts";
import { type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** Rules, channels and alerts. Nothing of them is left in the mesh. */
export function alerts(browser: () => Browser, shared: () => TestMesh): void {
  describe("alerts in the dashboard", () => {
    let mesh: TestMesh;
    let freezer: MqttDevice;
    let visit: Visit;
    let page: Page;

    beforeAll(async () => {
      mesh = shared();
      freezer = await (await enrolDevice(mesh, "freezer")).connect();
      await publish(12.5);
      await eventually(async () => (await asMaster(mesh).get("data?device_id=freezer")).json.length === 1);
      visit = await visitDashboard(browser(), mesh, { locale: "de-DE" });
      page = visit.page;
      await page.goto("/alerts/channels");
      await visit.signIn(mesh.masterKey);
    });
    afterAll(async () => {
      await visit?.[Symbol.asyncDispose]();
      await freezer?.client.endAsync();
      const master = asMaster(mesh);
      for (const { id } of (await master.get("rules")).json) await master.delete(`rules/${id}`);
      for (const { id } of (await master.get("channels")).json) await master.delete(`channels/${id}`);
      await master.delete("devices/freezer");
    });

    const publish = (celsius: number) => freezer.publish("db/freezer/climate", { celsius }, 1);
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    const box = (name: string) => page.getByRole("textbox", { name, exact: true });
    const navigation = () => page.getByRole("navigation", { name: "Views" });
    const part = (name: string) =>
      page.getByRole("navigation", { name: "Parts of the alerts" }).getByRole("link", { name });

    test("a channel is created, and an address that is none is named at its field", async () => {
      await button("New channel").click();
      const dialog = page.getByRole("dialog", { name: "New channel" });
      await dialog.getByLabel("Name").fill("On call");
      await dialog.getByLabel("Addresses").fill("nobody");
      await page.keyboard.press("Enter");
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.getByText("nobody is no e-mail address.").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await dialog.getByLabel("Addresses").press("Backspace");
      await dialog.getByLabel("Addresses").fill("ann@example.com");
      await page.keyboard.press("Enter");
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.waitFor({ state: "detached" });
      await page.getByRole("table", { name: "Channels" }).getByText("ann@example.com").waitFor();
      expect(await viewFaults(page)).toEqual([]);
    });

    test("a rule is a sentence, is tried on the last week, and can be saved then", async () => {
      await part("Rules").click();
      await button("New rule").click();
      await page.getByRole("heading", { level: 1, name: "New rule" }).waitFor();
      await button("Try").click();
      await eventually(async () => (await box("Topic").getAttribute("aria-invalid")) === "true");
      await box("Topic").fill("climate");
      await box("Limit").fill("warm");
      await page.getByText("Must be a number.").waitFor();
      await box("Devices").fill("label:bar n:");
      await eventually(async () => (await box("Devices").getAttribute("aria-invalid")) === "true");
      expect(await viewFaults(page)).toEqual([]);
      await box("Devices").fill("");
      await box("Pointer into the message").fill("/celsius");
      await box("Limit").fill("8,5");
      await box("It ends only beyond").fill("9");
      await page.getByText("Must be on the side where the condition does not hold.").waitFor();
      await box("It ends only beyond").fill("7,25");
      await page.getByText("When celsius of climate is above 8,5 (until 7,25).", { exact: true }).waitFor();
      await box("Name").fill("Freezer is warm");
      await page.getByRole("combobox", { name: "Severity" }).selectOption("critical");
      await page.getByRole("checkbox", { name: "On call" }).check();
      await box("Note").fill("Close the door.");
      expect(await button("Save").isDisabled()).toBe(true);
      await button("Try").click();
      await page.getByText(/^It would have fired once in the last 7 days, on 1 of /).waitFor();
      const trial = page.getByRole("table", { name: "What it would have done" });
      await trial.getByRole("row", { name: /^freezer .* still .*12,5$/ }).waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await button("Save").click();
      const row = page.getByRole("table", { name: "Rules" }).getByRole("row", { name: /Freezer is warm/ });
      await row.getByText("When celsius of climate is above 8,5 (until 7,25)").waitFor();
      await row.getByText("On call").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      // A channel that is in use stays.
      await part("Channels").click();
      await button("Delete the channel On call").and(page.locator("[aria-disabled=true]")).waitFor();
    });

    test("an alert is seen to fire on each page, and is acknowledged with a note", async () => {
      await visit.open("/home");
      await publish(12.5);
      const badge = navigation().getByRole("link", { name: /^Alerts ?1 firing$/ });
      await badge.waitFor();
      const firing = page.getByRole("list", { name: "Firing alerts" });
      await firing.getByText("freezer, 12,5").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await visit.open("/devices/freezer");
      await firing.getByRole("link", { name: "Freezer is warm" }).waitFor();
      expect(await viewFaults(page)).toEqual([]);

      await badge.click();
      const table = page.getByRole("table", { name: "Alerts" });
      await table.getByRole("row", { name: /critical.*freezer.*12,5.*firing/ }).waitFor();
      await page.getByRole("combobox", { name: "Severity" }).selectOption("info");
      await page.getByText("No alert matches").waitFor();
      await button("Show all of them").click();
      // By the keyboard alone.
      await table.getByRole("checkbox", { name: "Select Freezer is warm, freezer" }).focus();
      await page.keyboard.press("Space");
      await page.getByRole("region", { name: "Selected rows" }).getByText("1 alert").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await button("Acknowledge").click();
      const dialog = page.getByRole("dialog", { name: "Acknowledge the alert" });
      await dialog.getByLabel("Note").fill("Ann is on her way.");
      expect(await viewFaults(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Acknowledge" }).click();
      await table.getByText("acknowledged").waitFor();
      await badge.waitFor({ state: "detached" });

      await table.getByRole("link", { name: "Freezer is warm" }).click();
      await page.getByRole("heading", { level: 1, name: "Freezer is warm" }).waitFor();
      await page.getByText(/ by (First key|MASTER_KEY)$/).waitFor();
      await page.getByText("Close the door.").waitFor();
      const note = page.getByLabel("Note on the alert");
      expect(await note.inputValue()).toBe("Ann is on her way.");
      await note.fill("The door was open.");
      await button("Save the note").click();
      await eventually(
        async () => (await asMaster(mesh).get("alerts")).json[0]?.note === "The door was open.",
      );
      expect(await viewFaults(page)).toEqual([]);
      // What the device sends then ends it, on the page that is shown.
      await publish(6);
      await page.getByText(/: the condition ended$/).waitFor();
      await visit.open("/alerts");
      await page.getByText("Nothing fires").waitFor();
      await page.locator("label", { hasText: /^Cleared$/ }).click();
      await table.getByRole("row", { name: /Freezer is warm.*cleared/ }).waitFor();
      expect(await viewFaults(page)).toEqual([]);
    });

    test("each kind of rule is a sentence, and says what is wrong at its field", async () => {
      await part("Rules").click();
      await button("New rule").click();
      const kind = page.getByRole("combobox", { name: "Kind of condition" });
      const sentence = (text: string) => page.getByText(text, { exact: true }).waitFor();
      await kind.selectOption("silent");
      await box("Longer than").fill("1 s");
      await page.getByText("Must be from 10 s to 365 d.").waitFor();
      await box("Longer than").fill("10 min");
      await sentence("When no record comes for longer than 10 min.");
      await kind.selectOption("not_taken");
      await sentence("When what is desired is not reported for longer than 10 min.");
      await kind.selectOption("shadow");
      await box("Pointer into the shadow").fill("/app/mode");
      await page.getByText(/^Must begin with \/state\/desired/).waitFor();
      await box("Pointer into the shadow").fill("/state/reported/mode");
      await page.getByRole("combobox", { name: "Comparison" }).selectOption("==");
      await box("Limit").fill("eco");
      await sentence("When /state/reported/mode of the shadow is “eco”.");
      expect(await viewFaults(page)).toEqual([]);
      await kind.selectOption("event");
      const event = page.getByRole("combobox", { name: "Name of the event" });
      await event.fill("logins");
      await page.getByText(/^Must be the name of a frame about a device/).waitFor();
      await event.fill("login_refused");
      await page.keyboard.press("Tab");
      await box("Number of times").fill("3");
      await box("Within").fill("10 min");
      await sentence("When login_refused happens 3 times within 10 min.");
      expect(await viewFaults(page)).toEqual([]);
      await box("Sent again after").fill("12 h");
      await button("Try").click();
      await page.getByText(/^It would not have fired in the last hour, on /).waitFor();
      await button("Save").click();
      const name = "login_refused happens 3 times within 10 min";
      await page.getByRole("table", { name: "Rules" }).getByRole("link", { name }).waitFor();
      const [rule] = (await asMaster(mesh).get("rules")).json.filter(
        (each: { name: string }) => each.name === name,
      );
      expect(rule).toMatchObject({ repeat: "PT12H", when: { kind: "event", count: 3, within: "PT10M" } });
      await asMaster(mesh).delete(`rules/${rule.id}`);
    });

    test("a channel to a webhook is created, tested and changed", async () => {
      const { json: webhook } = await asMaster(mesh).post("webhooks", {
        url: "http://127.0.0.1:9/",
        name: "Chat",
        events: [],
      });
      await part("Channels").click();
      await button("New channel").click();
      const dialog = page.getByRole("dialog", { name: "New channel" });
      await dialog.locator("label", { hasText: "Webhook" }).first().click();
      await dialog.getByLabel("Name").fill("Team");
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.getByText("Enter a value.").waitFor();
      await dialog.getByLabel("Webhook").last().selectOption(webhook.id);
      await dialog.getByLabel("Written as").selectOption("slack");
      expect(await viewFaults(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.waitFor({ state: "detached" });
      const table = page.getByRole("table", { name: "Channels" });
      await table.getByText("Chat, as Slack").waitFor();
      await button("Send a test to Team").click();
      await page.getByText("A test is sent to Team").waitFor();
      await button("Change the channel Team").click();
      const change = page.getByRole("dialog", { name: "Change the channel" });
      await change.getByLabel("Written as").selectOption("ntfy");
      await change.getByRole("button", { name: "Save" }).click();
      await table.getByText("Chat, as ntfy").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await button("Delete the channel Team").click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await table.getByText("Chat, as ntfy").waitFor({ state: "detached" });
      await asMaster(mesh).delete(`webhooks/${webhook.id}`);
    });

    test("an alert is silenced from its page, and the silence is listed and ended", async () => {
      await publish(12.5);
      await visit.open("/alerts");
      const alerts = page.getByRole("table", { name: "Alerts" });
      await alerts.getByRole("link", { name: "Freezer is warm" }).click();
      await page.getByRole("heading", { level: 2, name: "celsius of climate" }).waitFor();
      await page.locator("canvas").waitFor();
      await button("Silence").click();
      const dialog = page.getByRole("dialog", { name: "New silence" });
      expect(await dialog.getByLabel("Devices").inputValue()).toBe("freezer");
      await dialog.locator("label", { hasText: "Other" }).click();
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.getByText("Enter a time.").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await dialog.locator("label", { hasText: "8 h" }).click();
      await dialog.getByLabel("Note").fill("It defrosts.");
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.waitFor({ state: "detached" });
      await visit.open("/alerts/silences");
      const row = page.getByRole("table", { name: "Silences" }).getByRole("row", { name: /^freezer/ });
      await row.getByText("active").waitFor();
      await row.getByText("Freezer is warm").waitFor();
      await row.getByText("It defrosts.").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      await button("End the silence of freezer").click();
      await page.getByRole("dialog").getByRole("button", { name: "End" }).click();
      await row.getByText("active").waitFor({ state: "detached" });
      await publish(6);
    });

    test("a rule is disabled, changed without another trial of its condition, and deleted", async () => {
      await part("Rules").click();
      const row = page.getByRole("table", { name: "Rules" }).getByRole("row", { name: /Freezer is warm/ });
      await row.getByRole("switch", { name: "Enable Freezer is warm" }).press("Space");
      await eventually(async () => (await asMaster(mesh).get("rules")).json[0]?.enabled === false);
      await row.getByRole("link", { name: "Freezer is warm" }).click();
      await box("Name").fill("Freezer is too warm");
      expect(await box("Limit").inputValue()).toBe("8,5");
      await button("Save").click();
      await button("Delete the rule Freezer is too warm").click();
      await button("Delete").click();
      await page.getByText("No rules yet").waitFor();
      expect(await viewFaults(page)).toEqual([]);
      expect(visit.pageErrors).toEqual(noPageErrors);
    });
  });
}
