import { readFile } from "node:fs/promises";
import { serviceNames } from "@devmesh/contracts/mesh";
import { secretsInText } from "@devmesh/contracts/model/api-key";
import type { DeviceLogin } from "@devmesh/simulator/device-connection";
import { type SimulatedDevice, startSimulatedDevice } from "@devmesh/simulator/simulated-device";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import type { SmtpSink } from "@devmesh/testkit/smtp-sink";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import type { Browser, Locator, Page } from "playwright-core";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { asAnyone, asMaster } from "../../src/tenant.ts";
import { testsInOrder } from "../../src/tests-in-order.ts";

/** The device of this user. What it publishes, it publishes when a test says so. */
const boiler = {
  app: "boiler",
  reported: { app: { setpoint: 19 }, fw_version: "2.4.1" },
  functions: { sum: (params: unknown) => (params as number[]).reduce((total, each) => total + each, 0) },
  telemetry: [],
};

/** A new user. The mesh has no device, key or customer of others before, and sends mail to `mailServer`. */
export function newUser(browser: () => Browser, shared: () => TestMesh, mailServer: () => SmtpSink): void {
  describe("a new user of the dashboard", () => {
    const test = testsInOrder(() => visit.describe());
    let mesh: TestMesh;
    let post: SmtpSink;
    let visit: Visit;
    let page: Page;
    let device: SimulatedDevice | undefined;
    /** As the page shows them. */
    let login: DeviceLogin;

    beforeAll(async () => {
      post = mailServer();
      mesh = shared();
      visit = await visitDashboard(browser(), mesh);
      page = visit.page;
    }, 180_000);
    afterAll(async () => {
      await device?.stop();
      await visit?.[Symbol.asyncDispose]();
    }, 120_000);

    type Part = Pick<Locator, "getByRole">;
    const button = (name: string, within: Part = page) => within.getByRole("button", { name, exact: true });
    const dialog = () => page.getByRole("dialog");
    const alert = (text: string) => page.getByRole("alert").filter({ hasText: text });
    const row = (text: string) => page.getByRole("row").filter({ hasText: text });
    const heading = (name: string) => page.getByRole("heading", { level: 1, name, exact: true });
    const section = (name: string) =>
      page
        .getByRole("navigation", { name: "Sections of the device" })
        .getByRole("link", { name, exact: true });
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    const publish = (topic: string, value: unknown) =>
      device?.send(`db/boiler/${topic}`, Buffer.from(JSON.stringify(value)));
    const connect = async () => {
      device = await startSimulatedDevice(login, boiler);
    };

    test("shows what is wrong with a key, and admits the right one", async () => {
      await page.goto("/");
      await page.getByLabel("Master key").fill(`mk_${"x".repeat(32)}`);
      await button("Sign in").click();
      await alert("This key is not known").waitFor();
      await page.getByLabel("Master key").fill(`dk_${"x".repeat(32)}`);
      await page.keyboard.press("Enter");
      await alert("This is a device key").waitFor();
      await visit.signIn(mesh.masterKey);
      await page.getByText("There are no devices yet").waitFor();
      await page.getByText("Live", { exact: true }).waitFor();
      expect(new URL(page.url()).pathname).toBe("/home");
    });

    test("has a session in the storage of the tab alone, and the master key nowhere", async () => {
      const kept = await page.evaluate(() => ({
        tab: JSON.stringify(sessionStorage),
        browser: JSON.stringify(localStorage),
        cookies: document.cookie,
      }));
      expect(kept.tab).toMatch(/sk_[0-9A-Za-z]{32}/);
      expect(kept.tab).not.toContain(mesh.masterKey);
      expect(kept.browser).not.toMatch(secretsInText);
      expect(kept.cookies).toBe("");
    });

    test("creates a device and is shown how it connects", async () => {
      await page.getByRole("link", { name: "Devices", exact: true }).click();
      await button("Add device").click();
      await dialog().getByLabel("ID").fill("boiler");
      await dialog().getByLabel("Name").fill("Boiler room");
      await dialog().getByRole("combobox", { name: "Labels" }).fill("cellar");
      await page.keyboard.press("Enter");
      await button("Create", dialog()).click();
      await dialog().getByText("boiler is created").waitFor();
      const told = async (name: string) => (await dialog().getByRole("region", { name }).textContent()) ?? "";
      expect(await told("Device ID")).toBe("boiler");
      const token = await told("Token");
      expect(token).toMatch(/^dt_[0-9A-Za-z]{32}$/);
      for (const name of ["Answer calls and take desired state over", "Publish a value every 10 s"]) {
        const options = /-h (?<host>\S+) -p (?<port>\d+) .*-u (?<id>\S+) -P (?<token>\S+)/.exec(
          await told(name),
        );
        const { host, port, id = "", token: password = "" } = options?.groups ?? {};
        login = { url: `mqtt://${host}:${port}`, id, token: password };
        expect(login).toEqual({ url: mesh.mqttUrl, id: "boiler", token });
      }
      expect(await told("Read it by REST")).toContain(`${mesh.url}/api/v2/devices/boiler`);
      await button("Copy Token, its MQTT password", dialog()).click();
      await eventually(async () => (await clipboard()) === token);
      await button("Done", dialog()).click();
      await dialog().waitFor({ state: "hidden" });
      await row("boiler").getByText("Boiler room").waitFor();
      await row("boiler").getByText("cellar").waitFor();
      await row("boiler").getByText("never").waitFor();
    });

    test("sees the device come online once it connects with those credentials", async () => {
      await connect();
      await row("boiler").getByText("online").waitFor();
      await row("boiler").getByText("2.4.1").waitFor();
    });

    test("calls a function that the device lists, and shows answer, timing and history", async () => {
      await page.getByRole("link", { name: "boiler", exact: true }).click();
      await heading("Boiler room").waitFor();
      expect(await page.title()).toBe("Boiler room (boiler) · Devmesh");
      await button("Copy the ID").click();
      await eventually(async () => (await clipboard()) === "boiler");
      await section("Calls").click();
      await page.getByText("The device has 9 functions, as listed by RPC.List.").waitFor();
      await page.getByRole("combobox", { name: "Function" }).click();
      const offered = page.getByRole("listbox").getByRole("option");
      await offered.first().waitFor();
      expect(await offered.allTextContents()).toEqual(
        expect.arrayContaining(["OTA.Update", "RPC.List", "Sys.GetInfo", "sum"]),
      );
      await offered.getByText("sum").click();
      await page.getByLabel("Parameters").fill("[2, 3");
      await alert("line 1").waitFor();
      await page.getByLabel("Parameters").fill("[2, 3]");
      await button("Call").click();
      const log = page.getByRole("log", { name: "Calls of this session" });
      await log.getByText("answered").waitFor();
      expect(await log.getByRole("region", { name: "Answer of sum" }).textContent()).toBe("5");
      await log.getByText(/^\d+ ms, at /).waitFor();

      await page.getByRole("combobox", { name: "Function" }).fill("No.Such");
      await page.getByLabel("Parameters").fill("");
      await button("Call").click();
      await log.getByText("The device has no such function").waitFor();
      expect(await log.getByRole("button", { name: "Use again" }).count()).toBe(2);
      await log.getByRole("button", { name: "Use again" }).last().click();
      expect(await page.getByRole("combobox", { name: "Function" }).inputValue()).toBe("sum");
    });

    test("finds the way back to the devices, and its edits again after a look elsewhere and a reload", async () => {
      await section("Shadow").click();
      await page.getByLabel("Desired").fill('{"app": {"setpoint": 20}}');
      await page.getByRole("main").getByRole("link", { name: "Devices" }).click();
      await row("boiler").getByRole("link").click();
      await section("Shadow unsaved").click();
      expect(await page.getByLabel("Desired").inputValue()).toBe('{"app": {"setpoint": 20}}');
      await page.reload();
      await page.getByLabel("Desired").waitFor();
      expect(await page.getByLabel("Desired").inputValue()).toBe('{"app": {"setpoint": 20}}');
      await button("Discard").click();
      expect(JSON.parse(await page.getByLabel("Desired").inputValue())).toEqual({});
    });

    test("edits the desired state and sees the device take it over and report", async () => {
      await section("Shadow").click();
      await page.getByLabel("Desired").fill('{"app": {"setpoint": 21}}');
      await page.getByText("1 value differs").waitFor();
      await button("Save").click();
      await page.getByText("In sync", { exact: true }).waitFor();
      await page.getByRole("region", { name: "Reported" }).getByText('"setpoint": 21').waitFor();
      expect(device?.reported).toMatchObject({ app: { setpoint: 21 } });
    });

    test("is shown what somebody else changed meanwhile, and decides which stays", async () => {
      await page.getByLabel("Desired").fill('{"app": {"setpoint": 22}}');
      const theirs = { shadow: { state: { desired: { app: { setpoint: 25 } } } } };
      expect((await asMaster(mesh).post("devices/boiler", theirs)).status).toBe(200);
      const conflict = alert("Someone else changed the desired state meanwhile");
      await conflict.waitFor();
      const cells = conflict.getByRole("row").last().getByRole("cell");
      expect(await cells.allTextContents()).toEqual(["/app/setpoint (both changed it)", "21", "25", "22"]);
      expect(await button("Save").isDisabled()).toBe(true);
      await button("Overwrite theirs with mine").click();
      await conflict.waitFor({ state: "hidden" });
      await page.getByText("In sync", { exact: true }).waitFor();
      expect((await asMaster(mesh).get("devices/boiler")).json.shadow.state.reported.app).toEqual({
        setpoint: 22,
      });
    });

    test("follows what happens to the device in its log", async () => {
      await section("Log").click();
      device?.send("boiler/event/overheated", Buffer.from('{"celsius": 93}'));
      const events = page.getByRole("list", { name: "Events of the device, newest first" });
      // What happened before the log was opened.
      await events.getByText("online", { exact: true }).first().waitFor();
      await events.getByText("boiler/event/overheated").waitFor();
      await events.getByText('{"celsius":93}').first().waitFor();
      await page.getByRole("switch", { name: "Records that it publishes, too" }).check();
      await eventually(async () => {
        publish("probe", 1);
        return (await events.getByText("db/boiler/probe").count()) > 0;
      });
    });

    test("sees in the log and in the overview why a login of the device was refused, as it happens", async () => {
      const history = page.getByRole("list", { name: "Connections and problems" });
      await history.getByText("connected", { exact: true }).waitFor();
      const wrong = { url: mesh.mqttUrl, id: "boiler", token: "wrong" };
      await expect(connectMqttDevice(wrong)).rejects.toThrow();
      await history.getByText("wrong password, from 127.0.0.1").waitFor();
      await section("Overview").click();
      await page.getByText("just now, wrong password, from 127.0.0.1").waitFor();
    });

    test("sees what the holder of the public key would see while editing the access", async () => {
      await section("Access").click();
      const seen = page.getByRole("region", { name: "What the public key sees" });
      await seen.getByText('"setpoint": 22').waitFor();
      await page.getByRole("combobox", { name: "Calls" }).fill("sum");
      await page.keyboard.press("Enter");
      await button("Save").click();
      await eventually(async () => (await asMaster(mesh).get("devices/boiler")).json.acl.rpc[0] === "sum");
    });

    test("replaces the token, which ends the device's connection, and copies the new one", async () => {
      await section("Credentials").click();
      await button("Show the credentials").click();
      // The page was loaded since the sign-in, so it has forgotten the key.
      await visit.enterMasterKey(mesh.masterKey);
      const before = login.token;
      await button("Copy the token").click();
      await eventually(async () => (await clipboard()) === before);
      await device?.stop();
      await button("Replace the token").click();
      await button("Replace the token", dialog()).click();
      await dialog().waitFor({ state: "hidden" });
      await eventually(async () => {
        await button("Copy the token").click();
        login = { ...login, token: await clipboard() };
        return login.token !== before;
      });
      await page.getByText("offline", { exact: true }).waitFor();
      await connect();
      await page.getByText("online", { exact: true }).waitFor();
    });

    test("sees records as they come, pauses them, and filters with the matches marked", async () => {
      await visit.goTo("Data");
      await page.getByText(/· live/).waitFor();
      for (const celsius of [60.5, 61.25, 63]) publish("temperature", { celsius });
      publish("state", "burning");
      await row("burning").waitFor();
      await row("63").waitFor();
      await button("Pause").click();
      await page.getByText(/· paused/).waitFor();
      publish("state", "idle");
      await eventually(async () => (await asMaster(mesh).get("data?filter=idle")).json.length === 1);
      expect(await row("idle").count()).toBe(0);
      await button("Resume").click();
      await row("idle").waitFor();

      await page.getByLabel("Filter").fill("celsius");
      await page.getByText(/^3 records/).waitFor();
      const marks = page.getByRole("table", { name: "Records, newest first" }).locator("mark");
      expect(await marks.allTextContents()).toEqual(["celsius", "celsius", "celsius"]);
      expect(new URL(page.url()).search).toBe("?filter=celsius");
    });

    test("exports what is selected as CSV, downloaded, and as NDJSON, streamed into a file", async () => {
      // A browser without a picker of files, and any on a page that came over plain HTTP from elsewhere, downloads.
      await page.evaluate(() => Reflect.deleteProperty(window, "showSaveFilePicker"));
      await button("Export").click();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name: "As CSV" }).click(),
      ]);
      expect(download.suggestedFilename()).toMatch(/^records-.*\.csv$/);
      const csv = (await readFile(await download.path(), "utf8")).trimEnd().split(/\r?\n/);
      expect(csv[0]).toBe("id,timestamp,device_id,topic,message,encoding");
      expect(csv.slice(1).map((line) => /""celsius"":([\d.]+)/.exec(line)?.[1])).toEqual([
        "60.5",
        "61.25",
        "63",
      ]);

      // No dialog can be answered here, so the file is one of the browser's private ones, which is written alike.
      await page.evaluate(() => {
        const pick = async ({ suggestedName }: { suggestedName: string }) => {
          document.documentElement.dataset.picked = suggestedName;
          const folder = await navigator.storage.getDirectory();
          return await folder.getFileHandle("picked", { create: true });
        };
        Object.assign(window, { showSaveFilePicker: pick });
      });
      await button("Export").click();
      await page.getByRole("menuitem", { name: "As NDJSON" }).click();
      const written = await eventually(async () => {
        const text = await page.evaluate(async () => {
          const folder = await navigator.storage.getDirectory();
          return await (await (await folder.getFileHandle("picked")).getFile()).text();
        });
        return text === "" ? null : text;
      });
      const records = written
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect(records.map(({ message }) => JSON.parse(message).celsius)).toEqual([60.5, 61.25, 63]);
      expect(await page.evaluate(() => document.documentElement.dataset.picked)).toMatch(/\.ndjson$/);
    });

    test("charts the numbers among the records", async () => {
      await button("Show chart").click();
      await page.getByLabel("Topic").selectOption("db/boiler/temperature");
      const numbers = page.getByRole("table", { name: "Numbers of db/boiler/temperature" });
      const cells = numbers.getByRole("row").last().getByRole("cell");
      await numbers.waitFor();
      expect(await cells.allTextContents()).toEqual(["63", "60.5", "63", "61.58", "3"]);
      await page.locator("canvas").waitFor();
    });

    test("charts what the device publishes on the device's page, live and in the range asked for", async () => {
      await visit.goTo("Devices");
      await page.getByRole("link", { name: "boiler", exact: true }).click();
      await section("Data").click();
      const chart = page.getByRole("region", { name: "db/boiler/temperature" });
      await chart.locator("canvas").waitFor();
      await chart.getByRole("cell", { name: "61.58" }).waitFor();
      publish("temperature", { celsius: 88 });
      await chart.getByRole("cell", { name: "68.19" }).waitFor();
      await page.getByText("15 min", { exact: true }).click();
      await chart.getByRole("cell", { name: "68.19" }).waitFor();
      expect(new URL(page.url()).search).toBe("?range=15m");
      await chart.locator(".u-over").scrollIntoViewIfNeeded();
      const plot = await chart.locator(".u-over").boundingBox();
      if (plot === null) throw new Error("the chart is not drawn");
      const y = plot.y + plot.height / 2;
      await page.mouse.move(plot.x + plot.width * 0.1, y);
      await page.mouse.down();
      await page.mouse.move(plot.x + plot.width * 0.4, y, { steps: 4 });
      await page.mouse.up();
      await button("Reset the zoom").waitFor();
      // Nothing was published then, and the table sums up what is seen.
      await chart.getByRole("row").last().getByRole("cell", { name: "0", exact: true }).waitFor();
      await page.reload();
      await button("Reset the zoom").click();
      await chart.getByRole("cell", { name: "68.19" }).waitFor();
      await page.getByRole("switch", { name: "UTC" }).check();
      expect(new URL(page.url()).search).toBe("?range=15m&zone=utc");
      const since = encodeURIComponent(new Date(Date.now() + 60_000).toISOString());
      await visit.open(`/devices/boiler/data?range=custom&since=${since}`);
      await page.getByText("The device has published nothing in this time.").waitFor();
    });

    test("creates a key, selects and copies it, and deletes it after a question", async () => {
      await visit.goTo("Keys");
      await button("Create key").click();
      await dialog().getByLabel("Name").fill("Night shift");
      await button("Create", dialog()).click();
      await visit.enterMasterKey(mesh.masterKey);
      const key = (await dialog().getByRole("region", { name: "Night shift" }).textContent()) ?? "";
      expect(key).toMatch(/^mk_[0-9A-Za-z]{32}$/);
      await button("Done", dialog()).click();

      await row("Night shift").getByText("hidden").waitFor();
      await button("Show the keys").click();
      await button("Copy the key Night shift").click();
      await eventually(async () => (await clipboard()) === key);
      await button("Show the key Night shift").click();
      await row("Night shift").getByText(key).click();
      expect(await page.evaluate(() => getSelection()?.toString())).toBe(key);

      await button("Delete the key Night shift").click();
      await button("Cancel", dialog()).click();
      expect((await asMaster(mesh).get("keys")).json).toHaveLength(2);
      await button("Delete the key Night shift").click();
      await button("Delete", dialog()).click();
      await row("Night shift").waitFor({ state: "detached" });
      expect((await asMaster(mesh).get("keys")).json).toHaveLength(1);
    });

    test("cannot delete the last master key", async () => {
      const remove = row("signed in").getByRole("button", { name: /^Delete the key/ });
      expect(await remove.getAttribute("aria-disabled")).toBe("true");
      await remove.hover();
      await page.getByText("The last master key cannot be deleted: create another one first").waitFor();
    });

    test("makes a key for one device, and sees the key go with its device", async () => {
      await asMaster(mesh).post("devices", { id: "spare" });
      await button("Create key").click();
      await dialog().getByText("Device key").click();
      await dialog().getByLabel("Device ID").fill("spare");
      await dialog().getByLabel("Name").fill("Tenant");
      await button("Create", dialog()).click();
      expect(await dialog().getByRole("region", { name: "Tenant" }).textContent()).toMatch(/^dk_/);
      await button("Done", dialog()).click();
      await row("Tenant").getByRole("link", { name: "spare" }).waitFor();
      await asMaster(mesh).delete("devices/spare");
      await row("Tenant").waitFor({ state: "detached" });
    });

    test("invites a customer, whose confirmation by the mailed link is shown at once, and removes it", async () => {
      await visit.goTo("Customers");
      await button("Invite customer").click();
      await dialog().getByLabel("E-mail").fill("no address");
      await button("Invite", dialog()).click();
      await dialog().getByText("This is no e-mail address.").waitFor();
      await dialog().getByLabel("E-mail").fill("ann@example.com");
      await button("Invite", dialog()).click();
      await dialog().getByText("is on its way").waitFor();
      await button("Done", dialog()).click();
      await row("ann@example.com").getByText("not confirmed").waitFor();

      const { content } = await post.awaitMail(({ to }) => to.includes("ann@example.com"));
      const [link = ""] = /http\S+\/confirm\?token=\S+/.exec(content.text ?? "") ?? [];
      const [accessToken] = /ck_[0-9A-Za-z]{32}/.exec(content.text ?? "") ?? [];
      const inbox = await visit.context.newPage();
      await inbox.goto(link);
      await inbox.getByRole("heading", { level: 1 }).waitFor();
      await inbox.close();
      await row("ann@example.com").getByText("confirmed", { exact: true }).waitFor();

      await button("Remove ann@example.com").click();
      await button("Remove", dialog()).click();
      await page.getByText("There are no customers yet").waitFor();
      expect((await asAnyone(mesh).get(`/customer?access_token=${accessToken}`)).status).toBe(401);
    });

    test("looks at the mesh: who runs, how busy, what waits, and mail that is sent after all", async () => {
      post.refuseRecipients(() => 550);
      await asAnyone(mesh).get("/newcustomer?email=bob@example.com");
      await visit.goTo("Services");
      const services = page.getByRole("table", { name: "Services" });
      for (const name of serviceNames) await services.getByText(name, { exact: true }).waitFor();
      const meanTime = services.getByRole("row", { name: "Endpoints of devices" }).getByText(/^[<\d.]+ ms$/);
      await eventually(async () => {
        await asMaster(mesh).get("devices/boiler");
        return (await meanTime.count()) > 0;
      });
      await services.getByRole("button", { name: "Endpoints of devices" }).click();
      await page.getByRole("table", { name: "Endpoints of devices" }).getByText("patch").first().waitFor();

      const lost = row("bob@example.com");
      await lost.getByText(/550/).waitFor();
      post.refuseRecipients(() => null);
      await button("Retry the mail to bob@example.com").click();
      await post.awaitMail(({ to }) => to.includes("bob@example.com"));
      await lost.waitFor({ state: "detached" });
      await page.getByText("1 mail is queued again.").waitFor();
    });

    test("the navigation leads to the reference of the API", async () => {
      const [reference] = await Promise.all([
        page.waitForEvent("popup"),
        page.getByRole("link", { name: "API" }).click(),
      ]);
      await reference.getByRole("link", { name: /^Devices/ }).click();
      const menu = reference.getByRole("navigation", { name: "API Menu" });
      await menu.getByRole("link", { name: "Read a device", exact: true }).waitFor();
      await reference.close();
    });

    test("works on several devices at once and sees what came of each", async () => {
      await visit.goTo("Devices");
      for (const id of ["pump-1", "pump-2"]) await asMaster(mesh).post("devices", { id });
      await row("pump-2").waitFor();
      // The device of the deleted key was deleted as well.
      await row("spare").waitFor({ state: "detached" });
      await page.getByLabel("Select all devices").check();
      await page.getByText("3 selected").waitFor();

      // What devices do is a job, so that it outlasts the page.
      await button("Call a function").click();
      await heading("New job").waitFor();
      await page.getByRole("textbox", { name: "Function" }).fill("sum");
      await page.getByRole("textbox", { name: "Parameters" }).fill("[40, 2]");
      await button("Dry run").click();
      await page.getByText("3 devices", { exact: true }).waitFor();
      await button("Start the job").click();
      await heading("sum [40,2]").waitFor();
      const calls = page.getByRole("table", { name: "Devices of the job" });
      await calls.getByRole("row", { name: /boiler succeeded 42/ }).waitFor();
      await calls.getByRole("row", { name: /pump-1 waiting/ }).waitFor();

      await visit.goTo("Devices");
      await page.getByLabel("Select all devices").check();
      await button("Set desired").click();
      await page.getByRole("textbox", { name: "Desired state" }).fill('{"app": {"site": 7}}');
      await button("Dry run").click();
      await button("Start the job").click();
      await heading('desired {"app":{"site":7}}').waitFor();
      await eventually(async () => {
        const { desired } = (await asMaster(mesh).get("devices/pump-1")).json.shadow.state;
        return desired?.app?.site === 7;
      });

      await visit.goTo("Devices");
      const work = page.getByRole("region", { name: "Work in progress" });
      await page.getByLabel("Select all devices").check();
      await button("Label").click();
      await page.getByRole("combobox", { name: "Add" }).fill("site-7");
      await page.keyboard.press("Enter");
      await button("Dry run").click();
      await button("Start the job").click();
      await heading("label site-7").waitFor();
      await page.getByText("done", { exact: true }).first().waitFor();
      await visit.goTo("Devices");
      await row("boiler").getByText("site-7").waitFor();

      for (const id of ["pump-1", "pump-2"]) await page.getByLabel(`Select ${id}`).check();
      await button("Delete").click();
      await dialog().getByLabel("Number of devices to delete").fill("2");
      await button("Delete", dialog()).click();
      await work.getByText("2 of 2 deleted").waitFor();
      await work.getByRole("button", { name: /^Close: / }).click();
      await row("pump-1").waitFor({ state: "detached" });
      await row("pump-2").waitFor({ state: "detached" });
      await row("boiler").waitFor();
    });

    test("sees on the home page who changed what last, with a way to the key", async () => {
      // A page that was opened before reads changes every 15 s.
      await visit.open("/home");
      const change = page
        .getByRole("list", { name: "Last changes" })
        .getByRole("listitem")
        .filter({ hasText: /Deleted device pump-\d and \d+ more/ });
      await change.getByRole("link").click();
      await heading("Keys").waitFor();
      const keys = page.getByRole("table", { name: "Keys" });
      await keys.getByText("signed in", { exact: true }).waitFor();
      expect(await keys.getByRole("row").count()).toBe(2);
    });

    test("opens the same view by its address, after a reload, and by back and forward", async () => {
      await visit.open("/devices?filter=site-7&online=true");
      await row("boiler").waitFor();
      expect(await page.getByRole("combobox", { name: "Filter devices" }).inputValue()).toBe("site-7");
      await page.getByRole("link", { name: "boiler", exact: true }).click();
      await section("Shadow").click();
      await page.getByLabel("Desired").waitFor();
      await page.reload();
      await page.getByLabel("Desired").waitFor();
      expect(new URL(page.url()).pathname).toBe("/devices/boiler/shadow");
      await page.goBack();
      await page.getByText("Last seen", { exact: true }).waitFor();
      await page.goBack();
      await row("boiler").waitFor();
      expect(new URL(page.url()).search).toBe("?filter=site-7&online=true");
      await page.goForward();
      await heading("Boiler room").waitFor();
      await visit.open("/no/such/view");
      await heading("Page not found").waitFor();
    });

    test("is signed out by the sign-out, and by the end of the key, which is shown", async () => {
      await visit.signOut();
      await page.getByLabel("Master key").waitFor();
      expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
      await page.reload();
      await page.getByLabel("Master key").waitFor();

      const temporary = (await asMaster(mesh).post("keys", { name: "temporary" })).json;
      await page.goto("/customers");
      await visit.signIn(temporary.key);
      await heading("Customers").waitFor();
      await page.getByText("Live", { exact: true }).waitFor();
      await asMaster(mesh).delete(`keys/${temporary.id}`);
      await alert("The session was ended").waitFor();
      expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    });

    test("met no violation of the page's policy, no error, no request elsewhere and no secret in a URL", () => {
      expect(visit.pageErrors).toEqual(noPageErrors);
    });
  });
}
