import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Execution } from "@devmesh/contracts/model/execution";
import { firmwareBounds } from "@devmesh/contracts/model/firmware";
import type { NewJob } from "@devmesh/contracts/model/job";
import { isJsonObject } from "@devmesh/contracts/model/json";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { eventually } from "@devmesh/testkit/eventually";
import type { StartedService } from "@devmesh/testkit/service-process";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { type JobsFixture, reasonOf } from "./jobs-fixture.ts";
import { type Script, ScriptedDevice } from "./scripted-device.ts";

const { pieceBytes } = firmwareBounds;

/** How often the leader is killed while devices get firmware; more by command (docs/testing.md). */
const kills = Number(process.env.UPDATE_KILLS ?? 4);

const image = Buffer.from(Uint8Array.from({ length: pieceBytes + 5_000 }, (_, at) => (at * 7) % 251));
const sha256 = createHash("sha256").update(image).digest("hex");
const call = () => createCallContext({ timeoutMs: 20_000 });

type Action = Extract<NewJob["action"], { readonly kind: "firmware" }>;
type Asked = Parameters<JobsFixture["createJob"]>[0];

/** What processes of the service do with jobs of firmware, over any store. */
export function describeUpdates(adapter: string, start: () => Promise<JobsFixture>): void {
  describe(`updates of firmware over ${adapter}`, () => {
    let mesh: JobsFixture;
    let service: StartedService;
    let firmware_id: string;
    let whole: string;
    beforeAll(async () => {
      mesh = await start();
      service = await mesh.start();
      whole = await upload();
    });
    beforeEach(() => {
      firmware_id = whole;
    });
    afterEach(async () => {
      const open = (await mesh.listJobs()).filter(({ ended_at }) => ended_at === null);
      for (const { id } of open) await mesh.changeJob(id, { state: "cancelled", force: true });
      await eventually(async () =>
        (await mesh.listJobs()).every(({ counts }) => counts.queued + counts.sent === 0),
      );
      mesh.devices.clear();
    });
    afterAll(async () => {
      await service.end("SIGKILL");
      await mesh[Symbol.asyncDispose]();
    });

    async function upload(more: object = {}): Promise<string> {
      const firmware = { name: "pump", version: `2.0-${randomUUID()}`, reported_as: "2.0", ...more };
      const created_by = { kind: "master", key_id: "k" } as const;
      const declared = { ...firmware, size: image.length, sha256 };
      const { id } = await mesh.firmware.createFirmware({ firmware: declared, created_by }, call());
      const content = randomUUID();
      for (let number = 0; number * pieceBytes < image.length; number++) {
        const piece = image.subarray(number * pieceBytes, (number + 1) * pieceBytes);
        const data = piece.toString("base64");
        await mesh.firmware.putContent({ id, upload: content, number, data }, call());
      }
      await mesh.firmware.endContent({ id, upload: content }, call());
      return id;
    }

    const add = (id: string, more: Partial<Script> = {}) =>
      new ScriptedDevice(mesh, id, { version: "1.0", next: "2.0", sha256, size: image.length, ...more });

    const create = async (action: Partial<Action> & Pick<Action, "via">, more: Partial<Asked> = {}) =>
      (
        await mesh.createJob({
          target: { ids: [...mesh.devices.keys()] },
          action: { kind: "firmware", firmware_id, stable: "PT0S", chunk: 16_000, ...action },
          retry: { after: "PT1S" },
          ...more,
        })
      ).id;
    const only = async (jobId: string) => (await mesh.listJobExecutions(jobId))[0] as Execution;
    const becomes = (jobId: string, wanted: Partial<Execution>) =>
      eventually(async () => {
        const one = await only(jobId);
        expect(one).toMatchObject(wanted);
        return one;
      });

    test("a file is pushed piece by piece, and counts once its version has lasted", async () => {
      const pump = add("pump", { commits: false });
      const id = await create({ via: "push", stable: "PT1S" });
      const ended = await becomes(id, { state: "succeeded" });
      expect(ended).toMatchObject({ attempts: 1, reason: null, percent: 100, stage: null, error: null });
      expect(pump.version).toBe("2.0");
      const { frames } = pump;
      const pieces = frames.filter(({ func }) => func === "OTA.Write");
      const data = pieces.map(({ params }) => (isJsonObject(params) ? String(params.data) : ""));
      expect(Buffer.concat(data.map((text) => Buffer.from(text, "base64"))).equals(image)).toBe(true);
      expect(frames.find(({ func }) => func === "OTA.Begin")?.params).toEqual({
        size: image.length,
        timeout: 3_600,
        commit_timeout: 601,
      });
      expect(pump.funcs.at(-1)).toBe("OTA.Commit");
      expect(mesh.devices.get("pump")?.loud).toEqual([]);
      await eventually(async () => (await mesh.readJob(id)).state === "done");
    });

    test("a device that runs the firmware is sent nothing", async () => {
      const pump = add("pump", { version: "2.0" });
      const id = await create({ via: "push" });
      await becomes(id, { state: "succeeded", reason: "already_installed" });
      expect(pump.funcs).toEqual(["Sys.GetInfo"]);
    });

    test("after a lost answer the attempt ends, and the next one begins the file again", async () => {
      const pump = add("pump", {
        lost: (func, count) => (func === "OTA.Write" && count === 5 ? "timeout" : null),
      });
      const id = await create({ via: "push" });
      await becomes(id, { state: "succeeded", attempts: 2 });
      const steps = pump.funcs.filter((func) => func !== "OTA.Write" && func !== "Sys.GetInfo");
      const again = ["OTA.Begin", "OTA.End", "OTA.Begin", "OTA.End", "OTA.Commit"];
      expect(steps).toEqual(["OTA.Begin", ...again]);
      expect(pump.installed).toBe(1);
    });

    test("a device with an offset goes on after lost answers, and after its leader was killed", async () => {
      const gate = Promise.withResolvers<void>();
      const pump = add("pump", {
        offset: true,
        lost: (func, count) => (func === "OTA.Write" && count % 6 === 5 ? "gone" : null),
      });
      const device = mesh.devices.get("pump");
      const answer = device?.answer;
      if (device === undefined || answer === undefined) throw new Error("no device");
      device.answer = async (func, params) => {
        if (func === "OTA.Write" && pump.count(func) === 9) await gate.promise;
        return await answer(func, params);
      };
      const id = await create({ via: "push" });
      await eventually(() => pump.count("OTA.Write") === 9);
      await service.end("SIGKILL");
      service = await mesh.start();
      gate.resolve();
      await becomes(id, { state: "succeeded", attempts: 1 });
      // The piece whose sender was killed may have been written.
      expect(pump.count("OTA.Write")).toBeLessThanOrEqual(Math.ceil(image.length / 16_000) + 2);
    });

    test("a push goes on at the beginning after its leader was killed", async () => {
      const pump = add("pump", { lost: () => null });
      const device = mesh.devices.get("pump");
      const answer = device?.answer;
      if (device === undefined || answer === undefined) throw new Error("no device");
      let isHeld = true;
      device.answer = (func, params) =>
        func === "OTA.Write" && pump.count(func) === 7 && isHeld
          ? new Promise<never>(() => undefined)
          : answer(func, params);
      const id = await create({ via: "push" });
      await eventually(() => device.received.filter((func) => func === "OTA.Write").length === 8);
      await service.end("SIGKILL");
      isHeld = false;
      service = await mesh.start();
      await becomes(id, { state: "succeeded", attempts: 1 });
      expect(pump.installed).toBe(1);
    });

    test("a device that fetches by itself may answer success as error 0, at its end, or not at all", async () => {
      const answers = {
        code0: () => ({ sent: true, outcome: "error", error: { code: 0, message: "" } }) as const,
        gone: () => ({ sent: true, outcome: "gone" }) as const,
        result: () => ({ sent: true, outcome: "result", result: null }) as const,
      };
      const devices = Object.entries(answers).map(([id, answer]): ScriptedDevice => {
        const device: ScriptedDevice = add(id, {
          onUpdate() {
            device.install();
            return answer();
          },
        });
        return device;
      });
      const id = await create({ via: "url" });
      await eventually(async () => (await mesh.readJob(id)).state === "done");
      expect((await mesh.readJob(id)).counts).toMatchObject({ succeeded: 3 });
      for (const device of devices) {
        const asked = device.frames.find(({ func }) => func === "OTA.Update")?.params;
        expect(asked).toEqual({
          url: expect.stringMatching(/^https:\/\/mesh\.example\.com\/api\/v2\/ota\/ot_\w{32}$/),
          commit_timeout: 600,
        });
        expect([device.committed, device.count("OTA.Update")]).toEqual([1, 1]);
      }
      expect(JSON.stringify(await mesh.listJobExecutions(id))).not.toMatch(/ot_|ticket/);
    });

    test("a device that cannot fetch says why, and is tried again with another URL", async () => {
      const pump = add("pump", {
        onUpdate: () => ({ sent: true, outcome: "error", error: { code: 500, message: "no space" } }),
      });
      const id = await create({ via: "url" }, { retry: { attempts: 2, after: "PT1S" } });
      const error = { code: 500, message: "no space" };
      await becomes(id, { state: "failed", reason: "transfer_failed", error, attempts: 2 });
      const urls = pump.frames.filter(({ func }) => func === "OTA.Update").map(({ params }) => params);
      expect(new Set(urls.map((url) => JSON.stringify(url))).size).toBe(2);
    });

    test("a device that rolls back fails, and is not tried again", async () => {
      const early = add("early", { rollsBack: "at_once" });
      const late = add("late", { rollsBack: "after_commit" });
      const id = await create({ via: "push", stable: "PT1S" });
      await eventually(async () => (await mesh.readJob(id)).state === "done");
      const failed = { state: "failed", reason: "rolled_back", attempts: 1 };
      expect(await mesh.listJobExecutions(id)).toMatchObject([failed, failed]);
      expect([early.installed, early.committed, late.installed, late.committed]).toEqual([1, 0, 1, 1]);
    });

    test("another version, no reboot and no return end as what they are", async () => {
      add("other", { next: "3.0" });
      add("stays", { reboots: false });
      add("gone", { awayMs: Number.POSITIVE_INFINITY });
      const unreadable = mesh.add("mute", {
        online: true,
        listens: true,
        answer: () => ({ sent: true, outcome: "result", result: { uptime: 5 } }),
      });
      // Those that report have all the time; the others must have got the file before theirs is over.
      const once = { retry: { attempts: 1 } };
      const jobIds = [
        await create({ via: "push" }, { ...once, target: { ids: ["other", "mute"] } }),
        await create({ via: "push", timeout: "PT15S" }, { ...once, target: { ids: ["stays", "gone"] } }),
      ];
      for (const id of jobIds) await eventually(async () => (await mesh.readJob(id)).state === "done");
      const executions = (await Promise.all(jobIds.map((id) => mesh.listJobExecutions(id)))).flat();
      const ends = executions.map(({ device_id, state, reason }) => [device_id, `${state} ${reason}`]);
      expect(Object.fromEntries(ends)).toEqual({
        other: "failed other_version",
        stays: "timed_out not_rebooted",
        gone: "timed_out no_answer",
        mute: "failed version_unreadable",
      });
      expect(unreadable.received).toEqual(["Sys.GetInfo"]);
    });

    test("a device fetches by its shadow, reports late, and the offer is removed", async () => {
      mesh.add("pump", {
        online: true,
        listens: true,
        desired: { app: { mode: "eco" } },
        // What it reported of an earlier update counts no more.
        reported: { ota: { fw_version: "1.0", code: 7, percent: 100 } },
        reportedAt: {
          ota: { fw_version: { timestamp: 1 }, code: { timestamp: 1 }, percent: { timestamp: 1 } },
        },
      });
      const id = await create({ via: "shadow", stable: "PT1S" });
      const sent = await becomes(id, { state: "sent", stage: "transferring" });
      const offered = () => mesh.devices.get("pump")?.desired;
      await eventually(() => offered()?.ota !== undefined);
      expect(offered()).toMatchObject({
        app: { mode: "eco" },
        ota: { url: expect.stringContaining("/ota/ot_"), sha256, size: image.length, execution: sent.id },
      });
      await mesh.report("pump", { ota: { fw_version: "1.0", percent: 40 } });
      await becomes(id, { percent: 40, stage: "transferring" });
      await mesh.report("pump", { ota: { fw_version: "1.0", percent: 100 } });
      await becomes(id, { stage: "rebooting" });
      await mesh.connect("pump");
      await sleep(500);
      await mesh.report("pump", { ota: { fw_version: "2.0" } });
      await becomes(id, { state: "succeeded", attempts: 1 });
      expect(offered()).toEqual({ app: { mode: "eco" } });
    });

    test("an error that a device reports in its shadow ends the attempt, and the offer", async () => {
      const pump = mesh.add("pump", { online: true, listens: true });
      const id = await create({ via: "shadow" }, { retry: { attempts: 1 } });
      await eventually(() => pump.desired.ota !== undefined);
      await mesh.report("pump", { ota: { code: 5, message: "bad signature" } });
      const error = { code: 5, message: "bad signature" };
      await becomes(id, { state: "failed", reason: "transfer_failed", error });
      expect(pump.desired).toEqual({});
    });

    test("an offer that its leader did not make before it was killed is made, with another ticket", async () => {
      const gate = Promise.withResolvers<void>();
      const pump = mesh.add("pump", { online: true, listens: true, patch: () => gate.promise });
      const id = await create({ via: "shadow" });
      await becomes(id, { stage: "transferring" });
      await service.end("SIGKILL");
      delete pump.patch;
      service = await mesh.start();
      await eventually(() => pump.desired.ota !== undefined);
      gate.resolve();
      await mesh.report("pump", { ota: { fw_version: "2.0" } });
      await becomes(id, { state: "succeeded", attempts: 1 });
    });

    test("a device that is not what the firmware requires is sent nothing, and counted before", async () => {
      firmware_id = await upload({ requires: { labels: { all: ["board-2"] } } });
      const [fits, other] = [add("fits"), add("other")];
      Object.assign(mesh.devices.get("fits") ?? {}, { labels: ["board-2"] });
      expect(await mesh.tryTarget({ ids: ["fits", "other"] }, firmware_id)).toMatchObject({
        devices: 2,
        not_eligible: 1,
      });
      const id = await create({ via: "push" });
      await eventually(async () => (await mesh.readJob(id)).state === "done");
      const [failed] = await mesh.listJobExecutions(id, { state: "failed" });
      expect(failed).toMatchObject({ device_id: "other", reason: "not_eligible", attempts: 0 });
      expect([fits.installed, other.funcs]).toEqual([1, []]);
    });

    test("calls wait while a device gets a file, and go through once it has it", async () => {
      const gate = Promise.withResolvers<void>();
      const pump = add("pump", {
        reboots: false,
        onUpdate: async () => {
          await gate.promise;
          return { sent: true, outcome: "result", result: true };
        },
      });
      const id = await create({ via: "url" });
      await becomes(id, { stage: "transferring" });
      await eventually(() => pump.count("OTA.Update") === 1);
      const waiting = await mesh.create("pump", { func: "Echo" });
      await sleep(700);
      expect((await mesh.read(waiting.id)).state).toBe("queued");
      gate.resolve();
      await eventually(async () => (await mesh.read(waiting.id)).state === "succeeded");
      await becomes(id, { state: "sent", stage: "rebooting" });
    });

    test("a device gets one file at a time, and another job's afterwards", async () => {
      const pump = add("pump");
      const [one, other] = [await create({ via: "push" }), await create({ via: "push" })];
      await becomes(one, { state: "succeeded" });
      await becomes(other, { state: "succeeded", reason: "already_installed" });
      expect(pump.count("OTA.Begin")).toBe(1);
    });

    test("an update is cancelled by force alone, and its offer is removed", async () => {
      const pump = mesh.add("pump", { online: true, listens: true });
      const id = await create({ via: "shadow" });
      await eventually(() => pump.desired.ota !== undefined);
      const { id: execution } = await only(id);
      expect(await reasonOf(mesh.cancel(execution))).toBe("execution_sent");
      expect(await mesh.cancel(execution, true)).toMatchObject({ state: "cancelled", reason: "by_request" });
      expect(pump.desired).toEqual({});
      const other = await create({ via: "shadow" });
      await eventually(() => pump.desired.ota !== undefined);
      await mesh.changeJob(other, { state: "cancelled", force: true });
      await becomes(other, { state: "cancelled", reason: "job_cancelled" });
      expect(pump.desired).toEqual({});
    });

    test("a push that is cancelled by force, or whose device is deleted, sends nothing more", async () => {
      const [pump, fan] = [add("pump", { lost: () => null }), add("fan", { lost: () => null })];
      for (const { id } of [pump, fan]) {
        const device = mesh.devices.get(id);
        const answer = device?.answer;
        if (device === undefined || answer === undefined) throw new Error("no device");
        device.answer = async (func, params) => {
          await sleep(100);
          return await answer(func, params);
        };
      }
      const id = await create({ via: "push", chunk: 1_000 });
      await eventually(() => pump.count("OTA.Write") > 2 && fan.count("OTA.Write") > 2);
      const executions = await mesh.listJobExecutions(id);
      await mesh.cancel(executions.find(({ device_id }) => device_id === "pump")?.id ?? "", true);
      await mesh.drop("fan");
      await sleep(500);
      const counts = () => [pump.count("OTA.Write"), fan.count("OTA.Write")];
      const before = counts();
      await sleep(1_000);
      expect(counts()).toEqual(before);
      await eventually(async () => (await mesh.readJob(id)).counts.cancelled === 2);
    });

    test("a restored store that is held sends nothing of an update that it had begun", async () => {
      const pump = add("pump");
      const device = mesh.devices.get("pump");
      if (device === undefined) throw new Error("no device");
      const { answer } = device;
      device.answer = (func, params) =>
        func === "OTA.Write" ? new Promise<never>(() => undefined) : answer(func, params);
      const id = await create({ via: "push" });
      await becomes(id, { stage: "transferring" });
      await service.end("SIGKILL");
      device.answer = answer;
      service = await mesh.start({ JOBS_HOLD: "true" });
      const begun = pump.count("OTA.Begin");
      await sleep(3_000);
      expect(pump.count("OTA.Begin")).toBe(begun);
      expect(await only(id)).toMatchObject({ state: "queued", attempts: 1 });
      await mesh.changeJob(id, { state: "running" });
      await becomes(id, { state: "succeeded", attempts: 2 });
    });

    test(
      "no device is left behind by a leader that is killed again and again",
      async () => {
        const devices = Array.from({ length: 12 }, (_, at): ScriptedDevice => {
          const device: ScriptedDevice = add(`d${at}`, {
            offset: at % 3 === 1,
            awayMs: 100 + 50 * at,
            onUpdate() {
              device.install();
              return { sent: true, outcome: "gone" };
            },
          });
          return device;
        });
        for (const { id } of devices) {
          const device = mesh.devices.get(id);
          if (device === undefined) throw new Error("no device");
          const { answer } = device;
          device.answer = async (func, params) => {
            await sleep(30);
            return await answer(func, params);
          };
        }
        const ids = (kind: number) => devices.filter((_, at) => at % 3 === kind).map(({ id }) => id);
        const jobs = [
          await create({ via: "push", stable: "PT1S" }, { target: { ids: [...ids(0), ...ids(1)] } }),
          await create({ via: "url", stable: "PT1S", timeout: "PT20S" }, { target: { ids: ids(2) } }),
        ];
        for (let kill = 0; kill < kills; kill++) {
          await sleep(300 + Math.random() * 1_500);
          await service.end("SIGKILL");
          service = await mesh.start();
        }
        for (const id of jobs)
          await eventually(async () => (await mesh.readJob(id)).state === "done", { withinMs: 120_000 });
        const ends = (await Promise.all(jobs.map((id) => mesh.listJobExecutions(id)))).flat();
        expect(ends.map(({ state }) => state)).toEqual(devices.map(() => "succeeded"));
        expect(devices.map(({ version }) => version)).toEqual(devices.map(() => "2.0"));
        expect(devices.map(({ installed }) => installed)).toEqual(devices.map(() => 1));
      },
      240_000 + kills * 5_000,
    );
  });
}
