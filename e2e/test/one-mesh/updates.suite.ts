import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type SimulatedDevice, startSimulatedDevice } from "@devmesh/simulator/simulated-device";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { openEventStream } from "@devmesh/testkit/notification-client";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { contentOf, filesBelow } from "../../src/files.ts";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** An update waits for a boot and for the version to last; cores may be busy. */
const updateMs = 90_000;

/** New firmware by a job, from the upload to devices that run it. */
export function updates(shared: () => TestMesh): void {
  describe("an update of firmware", () => {
    let mesh: TestMesh;
    let master: RestClient;
    const running: SimulatedDevice[] = [];
    const behaviours = {
      "update-well": {},
      "update-drops": { drops: true },
      "update-goes-on": { drops: true, takesOffset: true },
      "update-back": { rollsBack: true },
    };
    beforeAll(async () => {
      mesh = shared();
      master = asMaster(mesh);
      for (const [id, behaviour] of Object.entries(behaviours)) {
        const { token } = await enrolDevice(mesh, id);
        await master.post(`devices/${id}`, { shadow: { tags: { labels: ["update"] } } });
        const model = { app: "lamp", firmware: "1.0.0", reported: {}, functions: {}, telemetry: [] };
        const login = { url: mesh.mqttUrl, id, token };
        running.push(await startSimulatedDevice(login, { ...model, update: { pieceMs: 20, ...behaviour } }));
      }
    });
    afterAll(() => Promise.all(running.map((device) => device.stop())));

    async function upload(version: string) {
      const image = Buffer.concat([Buffer.from(`version=${version}\n`), Buffer.alloc(40_000, version)]);
      const sha256 = createHash("sha256").update(image).digest("hex");
      const declared = await master.post("firmware", { name: "lamp", version, size: image.length, sha256 });
      expect((await master.post(`firmware/${declared.json.id}/content`, image)).status).toBe(200);
      return { id: declared.json.id as string, image };
    }
    async function update(target: object, action: object, retry: object = {}): Promise<string> {
      const body = {
        target,
        action: { kind: "firmware", stable: "PT1S", timeout: "PT1M", ...action },
        retry: { after: "PT1S", ...retry },
      };
      const created = await master.post("jobs", body);
      expect([created.status, created.json]).toMatchObject([201, { state: "planning" }]);
      return created.json.id;
    }
    const done = (id: string) =>
      eventually(
        async () => {
          const { json } = await master.get(`jobs/${id}`);
          return json.state === "done" ? json : null;
        },
        { withinMs: updateMs, everyMs: 200 },
      );

    test("opens its file by a secret URL until it ends, which is in no file of the mesh", async () => {
      const { id: firmware_id, image } = await upload("0.9.0");
      const device = await enrolDevice(mesh, "update-eye");
      await using connection = await device.connect();
      const stream = await openEventStream(mesh.url, "/api/v2/notify", { key: mesh.masterKey });
      let url = "";
      let fetched = Buffer.alloc(0);
      await connection.answerRpc(async ({ method, params }) => {
        if (method === "Sys.GetInfo") return { result: { fw_version: "0.1.0" } };
        if (method !== "OTA.Update") return { error: { code: 404, message: "No handler" } };
        url = (params as { url: string }).url;
        fetched = Buffer.from(await (await fetch(url)).arrayBuffer());
        return { error: { code: 500, message: `cannot install ${url}` } };
      });
      const job = await update({ ids: ["update-eye"] }, { firmware_id, via: "url" }, { attempts: 1 });
      expect((await done(job)).counts).toMatchObject({ failed: 1 });
      expect(fetched.equals(image)).toBe(true);
      expect(url).toMatch(new RegExp(`^${mesh.url}/api/v2/ota/ot_\\w{32}$`));
      const [execution] = (await master.get(`jobs/${job}/executions`)).json;
      expect(execution).toMatchObject({ reason: "transfer_failed", attempts: 1 });
      await eventually(async () => {
        const answer = await fetch(url);
        return answer.status === 404 && (await answer.json()).reason === "ticket_ended";
      });
      const ticket = url.split("/").at(-1) ?? "";
      const frames = JSON.stringify(stream.frames);
      stream.leave();
      expect(frames).not.toContain(ticket);
      expect(mesh.output()).not.toContain(ticket);
      for (const file of await filesBelow(mesh.dataDir))
        expect([file, (await contentOf(file))?.includes(ticket) ?? false]).toEqual([file, false]);
      const { services } = JSON.parse(await readFile(join(mesh.dataDir, "mesh.json"), "utf8"));
      for (const { ops } of Object.values<{ ops: string }>(services))
        expect(await (await fetch(`${ops}/metrics`)).text()).not.toContain(ticket);
    }, 120_000);

    test.each([
      ["url", "2.0.0"],
      ["shadow", "3.0.0"],
      ["push", "4.0.0"],
    ])(
      "by %s reaches devices, also over lost connections, and finds the one that rolls back",
      async (via, version) => {
        const { id: firmware_id } = await upload(version);
        const where = { labels: { all: ["update"] } };
        const job = await update({ where }, { firmware_id, via, chunk: 1_024 });
        const ended = await done(job);
        const executions = (await master.get(`jobs/${job}/executions`)).json;
        const ends = Object.fromEntries(
          executions.map((one: { device_id: string; state: string; reason: string | null }) => [
            one.device_id,
            [one.state, one.reason],
          ]),
        );
        expect(ends).toEqual({
          "update-well": ["succeeded", null],
          "update-drops": ["succeeded", null],
          "update-goes-on": ["succeeded", null],
          "update-back": ["failed", "rolled_back"],
        });
        expect(ended.counts).toMatchObject({ succeeded: 3, failed: 1 });
        for (const id of Object.keys(behaviours)) {
          const { state } = (await master.get(`devices/${id}`)).json.shadow;
          const runs = id === "update-back" ? "1.0.0" : version;
          await eventually(async () => {
            const { reported } = (await master.get(`devices/${id}`)).json.shadow.state;
            return reported.ota.fw_version === runs;
          });
          expect(state.desired.ota).toBeUndefined();
        }
      },
      updateMs + 30_000,
    );
  });
}
