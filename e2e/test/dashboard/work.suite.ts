import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { modelOf } from "@devmesh/simulator/device-models";
import { startSimulatedDevice } from "@devmesh/simulator/simulated-device";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { describe, expect, test } from "@jest/globals";
import type { Browser } from "playwright-core";
import { seriousViolations } from "../../src/browser/accessibility.ts";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { visitDashboard } from "../../src/browser/visit.ts";
import { asMaster } from "../../src/tenant.ts";

/** Work for devices that are away. */
export function workForDevices(browser: () => Browser, shared: () => TestMesh): void {
  describe("work for a device that sleeps", () => {
    test("a call that waits is stored, listed, and cancelled", async () => {
      const mesh = shared();
      await asMaster(mesh).post("devices", { id: "sleeper", name: "Sleeper" });
      await using visit = await visitDashboard(browser(), mesh);
      const { page } = visit;
      await page.goto("/devices/sleeper/rpc");
      await visit.signIn(mesh.masterKey);
      await page.getByRole("combobox", { name: "Function" }).fill("Pump.Start");
      await page.getByLabel("If it does not listen").selectOption("it waits for an hour");
      await page.getByRole("button", { name: "Call", exact: true }).click();
      await page.getByText("Pump.Start is stored").waitFor();
      await page.getByRole("button", { name: "Work", exact: true }).click();
      const work = page.getByRole("table", { name: "Work of the device, newest first" });
      await work.getByText("until the device listens").waitFor();
      // Another client's call arrives by the stream.
      await asMaster(mesh).post("devices/sleeper/rpc/Pump.Stop?wait=PT1H");
      await work.getByText("Pump.Stop").waitFor();
      expect(await seriousViolations(page)).toEqual([]);
      await work.getByRole("button", { name: "Cancel Pump.Start" }).click();
      await work.getByText("by request").waitFor();
      await eventually(async () => {
        const { json } = await asMaster(mesh).get("devices/sleeper/executions?state=cancelled");
        return json.length === 1;
      });
      expect(visit.pageErrors).toEqual(noPageErrors);
    });

    test("a job is tried before it can be started, is followed live, paused and cancelled", async () => {
      const mesh = shared();
      for (const id of ["barn-1", "barn-2"])
        await asMaster(mesh).post("devices", { id, shadow: { tags: { labels: ["barn"] } } });
      await using visit = await visitDashboard(browser(), mesh);
      const { page } = visit;
      const button = (name: string) => page.getByRole("button", { name, exact: true });
      await page.goto("/jobs");
      await visit.signIn(mesh.masterKey);
      await button("New job").first().click();
      await page.getByRole("textbox", { name: "Name" }).fill("Air the barn");
      await page.getByRole("textbox", { name: "Function" }).fill("Fan.Set");
      await page.getByRole("textbox", { name: "Condition" }).fill("label:bar n:");
      await page
        .getByText(/Condition/)
        .first()
        .waitFor();
      expect(await button("Dry run").isDisabled()).toBe(true);
      await page.getByRole("textbox", { name: "Condition" }).fill("label:barn");
      expect(await button("Start the job").isDisabled()).toBe(true);
      await button("Dry run").click();
      await page.getByText("2 devices", { exact: true }).waitFor();
      await page.getByRole("textbox", { name: "Parameters" }).fill('{"on": true}');
      expect(await button("Start the job").isDisabled()).toBe(true);
      await page
        .getByRole("region", { name: "As a REST request" })
        .getByText(/"params":{"on":true}/)
        .waitFor();
      await button("Dry run").click();
      await page.getByText("2 devices", { exact: true }).waitFor();
      await button("Start the job").click();

      await page.getByRole("heading", { level: 1, name: "Air the barn" }).waitFor();
      const devices = page.getByRole("table", { name: "Devices of the job" });
      await devices.getByText("barn-2").waitFor();
      for (const colorScheme of ["dark", "light"] as const) {
        await page.emulateMedia({ colorScheme });
        await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
        expect(await seriousViolations(page)).toEqual([]);
      }
      await page.setViewportSize({ width: 390, height: 844 });
      expect(
        await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        ),
      ).toBe(0);
      await page.setViewportSize({ width: 1280, height: 800 });
      await button("Pause").click();
      await page.getByText("paused: by request").waitFor();
      // Another client's change arrives by the stream.
      const [job] = (await asMaster(mesh).get("jobs")).json;
      await asMaster(mesh).post(`jobs/${job.id}`, { state: "running" });
      await button("Pause").waitFor();
      await page.getByText(/^0 of 2 devices have ended, 0/).waitFor();
      await button("More of the devices").click();
      const [answers] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name: "Answers as CSV" }).click(),
      ]);
      const lines = (await readFile(await answers.path(), "utf8")).trim().split("\r\n");
      expect(lines.toSorted()).toEqual([
        "barn-1,queued,,until its turn comes and the device listens,0,",
        "barn-2,queued,,until its turn comes and the device listens,0,",
        "device,state,reason,answer,attempts,ended",
      ]);
      await button("Cancel").click();
      await button("Cancel the job").click();
      await page
        .getByText("cancelled: by request")
        .or(page.getByText("cancelled", { exact: true }))
        .first()
        .waitFor();
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Jobs" }).click();
      await page.getByRole("table", { name: "Jobs" }).getByRole("link", { name: "Air the barn" }).waitFor();
      expect(visit.pageErrors).toEqual(noPageErrors);
    });

    test("a file of firmware is uploaded, cancelled, uploaded again and deleted", async () => {
      const mesh = shared();
      await using visit = await visitDashboard(browser(), mesh);
      const { page, context } = visit;
      const button = (name: string) => page.getByRole("button", { name, exact: true });
      await page.goto("/firmware");
      await visit.signIn(mesh.masterKey);
      const content = randomBytes(3_000_000);
      const sha256 = createHash("sha256").update(content).digest("hex");
      const begin = async () => {
        await button("Upload firmware").click();
        const dialog = page.getByRole("dialog", { name: "Upload firmware" });
        await dialog
          .locator("input[type=file]")
          .setInputFiles({ name: "barn-2.0.0.bin", mimeType: "application/octet-stream", buffer: content });
        await dialog.getByText(sha256).waitFor();
        expect(await dialog.getByRole("textbox", { name: "Version" }).inputValue()).toBe("2.0.0");
        await dialog.getByRole("button", { name: "Upload", exact: true }).click();
      };
      const network = await context.newCDPSession(page);
      await network.send("Network.enable");
      const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 50_000 };
      await network.send("Network.emulateNetworkConditions", slow);
      await begin();
      const work = page.getByRole("region", { name: "Work in progress" });
      await work.getByText(/ of 3 MB/).waitFor();
      // It goes on while another view is shown.
      await visit.goTo("Jobs");
      await work.getByRole("button", { name: "Cancel" }).click();
      await work.getByText("Cancelled: nothing is kept.").waitFor();
      await eventually(async () => (await asMaster(mesh).get("firmware")).json.length === 0);
      await network.send("Network.emulateNetworkConditions", { ...slow, uploadThroughput: -1 });
      await visit.goTo("Firmware");
      await begin();
      const files = page.getByRole("table", { name: "Firmware", exact: true });
      await files.getByText("ready").waitFor();
      const [stored] = (await asMaster(mesh).get("firmware")).json;
      expect([stored.version, stored.sha256, stored.ready]).toEqual(["2.0.0", sha256, true]);
      for (const colorScheme of ["dark", "light"] as const) {
        await page.emulateMedia({ colorScheme });
        await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
        expect(await seriousViolations(page)).toEqual([]);
      }
      await files.getByRole("button", { name: "barn 2.0.0", exact: true }).click();
      await page.getByRole("dialog", { name: "barn 2.0.0" }).getByText(sha256).waitFor();
      expect(await seriousViolations(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await button("Delete barn 2.0.0").click();
      await button("Delete").click();
      await page.getByText("No files yet").waitFor();
      expect(visit.pageErrors).toEqual(noPageErrors);
    });

    test("an update is started from its file, followed to the end, and has succeeded when the device runs it", async () => {
      const mesh = shared();
      const { json: created } = await asMaster(mesh).post("devices", {
        id: "lobby-lamp",
        shadow: { tags: { labels: ["lobby"] } },
      });
      const device = await startSimulatedDevice(
        { url: mesh.mqttUrl, id: "lobby-lamp", token: created.token },
        { ...modelOf("lamp", "1.0.0"), update: { pieceMs: 500, bootMs: 500 } },
      );
      try {
        await using visit = await visitDashboard(browser(), mesh);
        const { page } = visit;
        const button = (name: string) => page.getByRole("button", { name, exact: true });
        const box = (name: string) => page.getByRole("textbox", { name });
        await page.goto("/firmware");
        await visit.signIn(mesh.masterKey);
        await button("Upload firmware").click();
        const upload = page.getByRole("dialog", { name: "Upload firmware" });
        const buffer = Buffer.concat([Buffer.from("version=2.0.0\n"), randomBytes(200_000)]);
        await upload
          .locator("input[type=file]")
          .setInputFiles({ name: "lobby-2.0.0.bin", mimeType: "application/octet-stream", buffer });
        await upload.getByRole("button", { name: "Upload", exact: true }).click();
        await page.getByRole("link", { name: "Update devices to lobby 2.0.0" }).click();
        await page.getByRole("heading", { level: 1, name: "New job" }).waitFor();
        await box("Condition").fill("label:lobby");
        await button("More of the update").click();
        await box("Must last").fill("1 s");
        await button("Dry run").click();
        await page.getByText("1 device", { exact: true }).waitFor();
        await button("Start the job").click();

        await page.getByRole("heading", { level: 1, name: "lobby to 2.0.0" }).waitFor();
        await page.getByRole("progressbar", { name: "Transfer to lobby-lamp" }).waitFor();
        await page.getByRole("list", { name: "Stages of the update" }).waitFor();
        expect(await seriousViolations(page)).toEqual([]);
        await page.getByText("done", { exact: true }).waitFor();
        const devices = page.getByRole("table", { name: "Devices of the job" });
        await devices.getByRole("row", { name: /lobby-lamp.*succeeded/ }).waitFor();
        await visit.goTo("Firmware");
        const versions = page.getByRole("table", { name: "Versions that the fleet reports" });
        await versions.getByRole("row", { name: /^2\.0\.0 1 .* lobby$/ }).waitFor();
        const { reported } = (await asMaster(mesh).get("devices/lobby-lamp")).json.shadow.state;
        expect(reported.ota.fw_version).toBe("2.0.0");
        expect(visit.pageErrors).toEqual(noPageErrors);
      } finally {
        await device.stop();
      }
    }, 120_000);

    test("selected devices become the target of a job", async () => {
      const mesh = shared();
      for (const id of ["chosen-1", "chosen-2"]) await asMaster(mesh).post("devices", { id });
      const content = randomBytes(1_000);
      const sha256 = createHash("sha256").update(content).digest("hex");
      const file = { name: "chosen", version: "3.0", size: content.length, sha256 };
      const { json: firmware } = await asMaster(mesh).post("firmware", {
        ...file,
        requires: { labels: { all: ["none-has-it"] } },
      });
      await asMaster(mesh).post(`firmware/${firmware.id}/content`, content);
      await using visit = await visitDashboard(browser(), mesh);
      const { page } = visit;
      await page.goto("/devices?filter=chosen-");
      await visit.signIn(mesh.masterKey);
      for (const id of ["chosen-1", "chosen-2"])
        await page.getByRole("checkbox", { name: `Select ${id}` }).check();
      await page.getByRole("button", { name: "Update firmware" }).click();
      await page.getByRole("heading", { level: 1, name: "New job" }).waitFor();
      const ids = (await page.getByRole("textbox", { name: "Ids" }).inputValue()).split("\n");
      expect(ids.toSorted()).toEqual(["chosen-1", "chosen-2"]);
      await page.getByLabel("Firmware", { exact: true }).selectOption({ label: "chosen 3.0, 1 KB" });
      await page.getByText("Pushed").click();
      await page.getByRole("button", { name: "More of the update" }).click();
      await page.getByRole("textbox", { name: "Must last" }).fill("90 s");
      await page
        .getByRole("region", { name: "As a REST request" })
        .getByText(/"stable":"PT90S"/)
        .waitFor();
      await page.getByRole("button", { name: "Dry run" }).click();
      await page.getByText("2 of them do not meet what the firmware requires", { exact: false }).waitFor();
      expect(await seriousViolations(page)).toEqual([]);
      // The page of a file leads there as well.
      await page.goto("/firmware");
      await page.getByRole("link", { name: "Update devices to chosen 3.0" }).click();
      await page.getByRole("heading", { level: 1, name: "New job" }).waitFor();
      expect(await page.getByLabel("Firmware", { exact: true }).inputValue()).toBe(firmware.id);
      await asMaster(mesh).delete(`firmware/${firmware.id}`);
      expect(visit.pageErrors).toEqual(noPageErrors);
    });
  });
}
