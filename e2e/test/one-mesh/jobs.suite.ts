import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { openEventStream } from "@devmesh/testkit/notification-client";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** Jobs over many devices, through the whole mesh. */
export function jobs(shared: () => TestMesh): void {
  describe("jobs", () => {
    let mesh: TestMesh;
    let master: RestClient;
    beforeAll(() => {
      mesh = shared();
      master = asMaster(mesh);
    });
    const done = (id: string) =>
      eventually(async () => {
        const { json } = await master.get(`jobs/${id}`);
        return json.ended_at === null ? null : json;
      });
    const label = (id: string, name: string) =>
      master.post(`devices/${id}`, { shadow: { tags: { labels: [name] } } });

    test("a job calls the devices of a condition, the one that sleeps when it wakes, over the death of its leader", async () => {
      const [awake, asleep] = [await enrolDevice(mesh, "job-1"), await enrolDevice(mesh, "job-2")];
      await Promise.all(["job-1", "job-2"].map((id) => label(id, "job-call")));
      await using first = await awake.connect();
      const received: string[] = [];
      await first.answerRpc(() => {
        received.push("job-1");
        return { result: "pong" };
      });
      const stream = await openEventStream(mesh.url, "/api/v2/notify", { key: mesh.masterKey });
      const asked = {
        name: "Ping",
        target: { where: { labels: { all: ["job-call"] } } },
        action: { kind: "rpc", func: "Ping", params: { n: 1 } },
      };
      const trial = await master.post("jobs?dry_run=true", asked);
      expect([trial.status, trial.json]).toEqual([
        200,
        { devices: 2, online: 1, not_found: 0, not_eligible: 0, sample: ["job-1", "job-2"] },
      ]);
      const created = await master.post("jobs", asked);
      expect([created.status, created.json.state]).toEqual([201, "planning"]);
      const { id } = created.json;
      expect(created.headers.get("location")).toBe(`/api/v2/jobs/${id}`);
      await eventually(async () => (await master.get(`jobs/${id}`)).json.counts.succeeded === 1);
      const pid = await mesh.pidOf("jobs");
      await mesh.kill("jobs");
      await mesh.restarted("jobs", pid);
      await using second = await asleep.connect();
      await second.answerRpc(() => {
        received.push("job-2");
        return { error: { code: 500, message: "hot" } };
      });
      expect(await done(id)).toMatchObject({
        state: "done",
        devices: 2,
        counts: { succeeded: 1, failed: 1, queued: 0 },
        created_by: { kind: "master" },
      });
      expect(received).toEqual(["job-1", "job-2"]);
      const failed = await master.get(`jobs/${id}/executions?state=failed`);
      expect(failed.json).toMatchObject([
        { device_id: "job-2", job_id: id, reason: "device_error", error: { code: 500 } },
      ]);
      const frames = () => stream.frames.filter(({ name, id: about }) => name === "job" && about === id);
      await eventually(() => frames().some(({ data }) => (data as { state: string }).state === "done"));
      stream.leave();
      expect((await master.get("jobs?state=done&limit=1")).json).toMatchObject([{ id }]);
      const again = await master.post(`jobs/${id}`, { state: "running" });
      expect([again.status, again.json.reason]).toEqual([409, "job_ended"]);
    }, 120_000);

    test("a job changes shadows of sleeping devices and succeeds when they report", async () => {
      const device = await enrolDevice(mesh, "job-3");
      await label("job-3", "job-shadow");
      const { json } = await master.post("jobs", {
        target: { where: { labels: { all: ["job-shadow"] } } },
        action: { kind: "shadow", patch: { state: { desired: { mode: "eco" } } } },
      });
      await eventually(async () => (await master.get(`jobs/${json.id}`)).json.counts.sent === 1);
      expect((await master.get("devices/job-3")).json.shadow.state.desired).toMatchObject({ mode: "eco" });
      expect((await master.get(`jobs/${json.id}/executions`)).json).toMatchObject([
        { state: "sent", stage: "reporting" },
      ]);
      await using connected = await device.connect();
      await connected.publish("job-3/shadow/update", { state: { reported: { mode: "eco" } } }, 1);
      expect(await done(json.id)).toMatchObject({ state: "done", counts: { succeeded: 1 } });
    }, 120_000);

    test("bad input is refused with the place, and nothing is stored", async () => {
      const target = { where: {} };
      const action = { kind: "rpc", func: "Ping" };
      const violated = async (body: object) => {
        const { status, json } = await master.post("jobs", body);
        return [status, ...(json.errors ?? []).map(({ pointer }: { pointer: string }) => pointer)];
      };
      const before = (await master.get("jobs")).json;
      expect(await violated({ target, action: { kind: "fly" } })).toEqual([400, "/action/kind"]);
      expect(await violated({ target: {}, action })).toEqual([400, "/target"]);
      expect(await violated({ target: { ids: ["a b"] }, action })).toEqual([400, "/target/ids/0"]);
      expect(await violated({ target: { ids: ["a"] }, action, continuous: true })).toEqual([
        400,
        "/continuous",
      ]);
      expect(await violated({ target, action, expires_in: "1d" })).toEqual([400, "/expires_in"]);
      const stages = [{ percent: 50 }, { percent: 10 }];
      expect(await violated({ target, action, rollout: { stages } })).toEqual([400, "/rollout/stages"]);
      expect(await violated({ target: { of_job: "none", states: ["failed"] }, action })).toEqual([
        400,
        "/target/of_job",
      ]);
      expect((await master.get("jobs")).json).toEqual(before);
    });
  });
}
