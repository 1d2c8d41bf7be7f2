import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { describeOverStores } from "./describe-over-stores.ts";
import type { JobsFixture } from "./jobs-fixture.ts";
import { updatesOf } from "./updates-mesh.ts";

describeOverStores("failed updates of firmware", (start) => {
  let mesh: JobsFixture;
  const { upload, add, create, becomes } = updatesOf(() => mesh);
  beforeAll(async () => {
    mesh = await start();
  });
  afterEach(() => mesh.clear());
  afterAll(async () => await mesh?.[Symbol.asyncDispose]());

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
    const brief = add("brief", { rollsBack: "at_once", unseen: true });
    const id = await create({ via: "push", stable: "PT1S" });
    await eventually(async () => (await mesh.readJob(id)).state === "done");
    const failed = { state: "failed", reason: "rolled_back", attempts: 1 };
    expect(await mesh.listJobExecutions(id)).toMatchObject([failed, failed, failed]);
    const counts = [early, late, brief].map(({ installed, committed }) => [installed, committed]);
    expect(counts).toEqual([
      [1, 0],
      [1, 1],
      [1, 0],
    ]);
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

  test("an error that a device reports in its shadow ends the attempt, and the offer", async () => {
    const pump = mesh.add("pump", { online: true, listens: true });
    const id = await create({ via: "shadow" }, { retry: { attempts: 1 } });
    await eventually(() => pump.desired.ota !== undefined);
    await mesh.report("pump", { ota: { code: 5, message: "bad signature" } });
    const error = { code: 5, message: "bad signature" };
    await becomes(id, { state: "failed", reason: "transfer_failed", error });
    expect(pump.desired).toEqual({});
  });

  test("an error that a device reports after it was sent the whole file ends the attempt, too", async () => {
    const pump = mesh.add("pump", {
      online: true,
      listens: true,
      reported: { ota: { fw_version: "1.0" } },
      reportedAt: { ota: { fw_version: { timestamp: 1 } } },
    });
    const id = await create({ via: "shadow" }, { retry: { attempts: 1 } });
    await eventually(() => pump.desired.ota !== undefined);
    await mesh.report("pump", { ota: { fw_version: "1.0", percent: 100 } });
    await becomes(id, { stage: "rebooting" });
    // What Mongoose OS finds wrong, in its words.
    const error = { code: -1, message: "Wrong platform" };
    await mesh.report("pump", { ota: { fw_version: "1.0", percent: 100, ...error } });
    await becomes(id, { state: "failed", reason: "transfer_failed", error });
    expect(pump.desired).toEqual({});
  });

  test("a device without the functions of a push ends as such", async () => {
    mesh.add("pump", {
      online: true,
      listens: true,
      answer: (func) =>
        func === "Sys.GetInfo"
          ? { sent: true, outcome: "result", result: { fw_version: "1.0" } }
          : { sent: true, outcome: "no_such_function" },
    });
    const id = await create({ via: "push" }, { retry: { attempts: 1 } });
    await becomes(id, { state: "failed", reason: "function_not_found", error: null });
  });

  test("a device that is not what the firmware requires is sent nothing, and counted before", async () => {
    const firmware_id = await upload({ requires: { labels: { all: ["board-2"] } } });
    const [fits, other] = [add("fits"), add("other")];
    Object.assign(mesh.devices.get("fits") ?? {}, { labels: ["board-2"] });
    expect(await mesh.tryTarget({ ids: ["fits", "other"] }, firmware_id)).toMatchObject({
      devices: 2,
      not_eligible: 1,
    });
    const id = await create({ via: "push", firmware_id });
    await eventually(async () => (await mesh.readJob(id)).state === "done");
    const [failed] = await mesh.listJobExecutions(id, { state: "failed" });
    expect(failed).toMatchObject({ device_id: "other", reason: "not_eligible", attempts: 0 });
    expect([fits.installed, other.funcs]).toEqual([1, []]);
  });
});
