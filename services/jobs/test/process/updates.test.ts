import { setTimeout as sleep } from "node:timers/promises";
import { isJsonObject } from "@devmesh/contracts/model/json";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { describeOverStores } from "./describe-over-stores.ts";
import { type JobsFixture, reasonOf } from "./jobs-fixture.ts";
import type { ScriptedDevice } from "./scripted-device.ts";
import { image, sha256, updatesOf } from "./updates-mesh.ts";

describeOverStores("updates of firmware", (start) => {
  let mesh: JobsFixture;
  const { upload, add, create, only, becomes } = updatesOf(() => mesh);
  beforeAll(async () => {
    mesh = await start();
  });
  afterEach(() => mesh.clear());
  afterAll(async () => await mesh?.[Symbol.asyncDispose]());

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

  test("a device that runs the firmware is sent no file", async () => {
    const pump = add("pump", { version: "2.0" });
    const id = await create({ via: "push" });
    await becomes(id, { state: "succeeded", reason: "already_installed" });
    expect(pump.funcs).toEqual(["Sys.GetInfo", "OTA.GetBootState"]);
  });

  test("a version that is reported as a number, or with a line break, is the version", async () => {
    const numbers = await upload({ reported_as: "2" });
    add("called", { version: 1, next: 2 });
    add("broken", { version: "1\n", next: "2\n" });
    const shadow = { ota: { fw_version: 2 } };
    mesh.add("shadow", { online: true, listens: true, reported: shadow });
    const ids = [
      await create({ via: "push", firmware_id: numbers }, { target: { ids: ["called", "broken"] } }),
      await create({ via: "shadow", firmware_id: numbers }, { target: { ids: ["shadow"] } }),
    ];
    const [called, other] = await Promise.all(ids.map((id) => mesh.jobBecomes(id, "done")));
    expect(called?.counts).toMatchObject({ succeeded: 2 });
    expect(other?.counts).toMatchObject({ succeeded: 1 });
    const attempts = (await mesh.listJobExecutions(ids[0] ?? "")).map((one) => one.attempts);
    expect(attempts).toEqual([1, 1]);
  });

  test("firmware that an update before left uncommitted is committed once it has lasted, else it would go back", async () => {
    const pump = add("pump", { version: "2.0", isUncommitted: true, commits: "once" });
    const id = await create({ via: "url", stable: "PT1S" });
    await becomes(id, { state: "sent", stage: "confirming" });
    await becomes(id, { state: "succeeded", reason: null });
    expect([pump.committed, pump.count("OTA.Commit"), pump.count("OTA.Update")]).toEqual([1, 1, 0]);
  });

  test("a device that does not say whether its firmware is committed runs it already", async () => {
    const outcomes = { mute: "timeout", plain: "no_such_function", odd: "unreadable" } as const;
    for (const [id, outcome] of Object.entries(outcomes))
      add(id, { version: "2.0", lost: (func) => (func === "OTA.GetBootState" ? outcome : null) });
    const id = await create({ via: "push" });
    await eventually(async () => (await mesh.readJob(id)).counts.succeeded === 3);
    const reasons = (await mesh.listJobExecutions(id)).map(({ reason }) => reason);
    expect(reasons).toEqual(Array(3).fill("already_installed"));
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

  test("firmware that is committed already has succeeded, though the device refuses to commit it again", async () => {
    const itself = add("itself", { commits: "once", commitsItself: true });
    const lost = add("lost", {
      commits: "once",
      lost: (func, count) => (func === "OTA.Commit" && count === 1 ? "gone" : null),
    });
    const id = await create({ via: "url" }, { retry: { attempts: 1 } });
    for (const device of [itself, lost]) await eventually(() => device.count("OTA.Update") === 1);
    for (const device of [itself, lost]) device.install();
    await eventually(async () => (await mesh.readJob(id)).state === "done");
    expect((await mesh.readJob(id)).counts).toMatchObject({ succeeded: 2 });
    expect([itself.committed, lost.committed, lost.count("OTA.Commit")]).toEqual([0, 1, 2]);
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

  test("no more devices are pushed a file at a time than are allowed, of all jobs", async () => {
    await mesh.restart({ JOBS_PUSHES: "3" });
    const gate = Promise.withResolvers<void>();
    const devices = Array.from({ length: 8 }, (_, at) => add(`d${at}`));
    let [pushed, most] = [0, 0];
    for (const { id } of devices) {
      const device = mesh.devices.get(id);
      if (device === undefined) throw new Error("no device");
      const { answer } = device;
      device.answer = async (func, params) => {
        if (func === "OTA.Begin") most = Math.max(most, ++pushed);
        if (func === "OTA.Write") await gate.promise;
        if (func === "OTA.End") pushed--;
        return await answer(func, params);
      };
    }
    const ids = devices.map(({ id }) => id);
    const jobs = [
      await create({ via: "push" }, { target: { ids: ids.slice(0, 4) } }),
      await create({ via: "push" }, { target: { ids: ids.slice(4) } }),
    ];
    await eventually(() => pushed === 3);
    // Calls of other devices do not wait for a place.
    mesh.add("lamp", { online: true, listens: true });
    const { id: called } = await mesh.create("lamp");
    await eventually(async () => (await mesh.read(called)).state === "succeeded");
    gate.resolve();
    for (const id of jobs) await eventually(async () => (await mesh.readJob(id)).counts.succeeded === 4);
    expect(most).toBe(3);
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
    const counts = () => [pump.count("OTA.Write"), fan.count("OTA.Write")];
    await eventually(async () => {
      const before = counts();
      await sleep(1_000);
      expect(counts()).toEqual(before);
      return true;
    });
    // They did not end because all was sent.
    expect(Math.max(...counts())).toBeLessThan(image.length / 1_000);
    await eventually(async () => (await mesh.readJob(id)).counts.cancelled === 2);
  });
});
