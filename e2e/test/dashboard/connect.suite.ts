import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { executablesOnPath } from "@devmesh/launcher/nats-server/path-search";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { startProcess, type TestProcess } from "@devmesh/testkit/process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import { noPageErrors } from "../../src/browser/page-errors.ts";
import { type Visit, visitDashboard } from "../../src/browser/visit.ts";
import { findPaho } from "../../src/find-paho.ts";
import { asMaster } from "../../src/tenant.ts";

const paho = await findPaho();
const [mosquitto] = await executablesOnPath("mosquitto_pub", process.env.PATH);
const [jq] = await executablesOnPath("jq", process.env.PATH);

/** The wizard that connects a device. It leaves no device. */
export function connectDevice(browser: () => Browser, shared: () => TestMesh): void {
  describe("the wizard that connects a device", () => {
    let mesh: TestMesh;
    let visit: Visit;
    let page: Page;

    beforeAll(async () => {
      mesh = shared();
      visit = await visitDashboard(browser(), mesh);
      page = visit.page;
      await page.goto("/");
      await visit.signIn(mesh.masterKey);
    }, 180_000);
    afterAll(async () => {
      await visit?.[Symbol.asyncDispose]();
      const { json: devices } = await asMaster(mesh).get("devices");
      for (const { id } of devices) await asMaster(mesh).delete(`devices/${id}`);
    }, 120_000);

    const wizard = () => page.getByRole("region", { name: "Connect the device" });
    const waiting = () => wizard().getByText("Waiting for the first message…", { exact: true });
    const arrived = () => wizard().getByText("The device sends messages.");
    const codeOf = async (name: string) =>
      (await wizard().getByRole("region", { name, exact: true }).textContent()) ?? "";

    /** Adds a device in the dashboard and opens a client's tab; nothing has come from the device yet. */
    async function addDevice(id: string, client: string): Promise<void> {
      await visit.open("/devices");
      await page.getByRole("button", { name: "Add device", exact: true }).click();
      await page.getByRole("dialog").getByLabel("ID").fill(id);
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await visit.enterMasterKey(mesh.masterKey);
      await wizard().getByRole("tab", { name: client }).click();
      await waiting().waitFor();
    }

    /** A test that runs what the wizard shows; where its program is missing, the name says so. */
    function testWith(client: string, isThere: boolean, run: () => Promise<void>): void {
      const name = `turns green for what it shows for ${client}`;
      if (isThere) test(name, run);
      else test.skip(`${name} (${client} cannot be had here)`, run);
    }

    testWith("mosquitto", mosquitto !== undefined && jq !== undefined, async () => {
      await addDevice("by-mosquitto", "mosquitto");
      await using receiver = startShell(await codeOf("Answer calls and take desired state over, with jq"));
      await wizard().getByText("The device is connected. Waiting for the first message…").waitFor();
      await using sender = startShell(await codeOf("Publish a value every 10 s"));
      await arrived().waitFor();
      await answersAndFollows("by-mosquitto");
      expect(receiver.output()).toContain("by-mosquitto/rpc {");
      expect(sender.output()).toBe("");
    });

    /** A script whose programs end with it. */
    function startShell(script: string): AsyncDisposable & Pick<TestProcess, "output"> {
      const { child, ended, output } = startProcess("bash", ["-c", script], { detached: true });
      return {
        output,
        async [Symbol.asyncDispose]() {
          if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
          await ended;
        },
      };
    }

    testWith("Python (paho)", paho !== null, async () => {
      await addDevice("by-paho", "Python (paho)");
      await using folder = await tempFolder();
      const file = join(folder.path, "device.py");
      await writeFile(file, await codeOf("device.py"));
      const env = { ...process.env, PYTHONPATH: paho ?? "", PYTHONUNBUFFERED: "1" };
      await using device = startProcess("python3", [file], { env });
      await showsMessage(device, "by-paho");
    });

    testWith("Node (MQTT.js)", true, async () => {
      await addDevice("by-mqtt-js", "Node (MQTT.js)");
      const code = ["--input-type=module", "--eval", await codeOf("device.mjs")];
      await using device = startProcess(process.execPath, code, { cwd: repository });
      await showsMessage(device, "by-mqtt-js");
    });

    async function showsMessage(device: TestProcess, id: string): Promise<void> {
      await arrived().waitFor();
      await wizard().getByText(`just now: db/${id}/temperature`).waitFor();
      await eventually(() => /^connected/m.test(device.output()));
      await answersAndFollows(id);
      await eventually(() => device.output().includes("acknowledged by the broker: 1"));
    }

    async function answersAndFollows(id: string): Promise<void> {
      const master = asMaster(mesh);
      expect((await master.post(`devices/${id}/rpc/sum`, [2, 3])).json).toBe(5);
      expect((await master.post(`devices/${id}/rpc/fly`, [])).json.reason).toBe("function_not_found");
      const desired = { app: { on: true } };
      await master.post(`devices/${id}`, { shadow: { state: { desired } } });
      await eventually(async () => {
        const { state } = (await master.get(`devices/${id}`)).json.shadow;
        return state.delta === undefined && state.reported.app?.on === true;
      });
    }

    test("says why a login is refused, until the first message arrives after all", async () => {
      await addDevice("by-hand", "Mongoose OS");
      const token = /mqtt\.pass=(\S+)/.exec(await codeOf("Configure"))?.[1] ?? "";
      const login = { url: mesh.mqttUrl, id: "by-hand" };
      await expect(connectMqttDevice({ ...login, token: "wrong" })).rejects.toThrow();
      const refusal = page
        .getByRole("alert")
        .filter({ hasText: "Login refused: wrong password, from 127.0.0.1" });
      await refusal.waitFor();
      await waiting().waitFor();
      await using device = await connectMqttDevice({ ...login, token });
      await wizard().getByText("The device is connected.").waitFor();
      expect(await refusal.isVisible()).toBe(true);
      await device.publish("db/by-hand/temperature", "21.5", 1);
      await arrived().waitFor();
      await refusal.waitFor({ state: "detached" });
    });

    test("is on the page of a device, too, which links to it until the device has been there", async () => {
      await asMaster(mesh).post("devices", { id: "linked" });
      await visit.open("/devices/linked");
      await page.getByRole("link", { name: "Connect it" }).click();
      await waiting().waitFor();
      await page.getByRole("button", { name: "Show the credentials" }).click();
      await visit.enterMasterKey(mesh.masterKey);
      await page.getByRole("switch", { name: "Include the secrets" }).check();
      expect(await codeOf("Publish a value every 10 s")).toMatch(/-u linked -P dt_[0-9A-Za-z]{32} /);
      expect(visit.pageErrors).toEqual(noPageErrors);
    });
  });
}
