import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { describeOverStores } from "./describe-over-stores.ts";
import type { JobsFixture } from "./jobs-fixture.ts";
import { image, updatesOf } from "./updates-mesh.ts";

describeOverStores("interrupted updates of firmware", (start) => {
  let mesh: JobsFixture;
  const { add, create, only, becomes } = updatesOf(() => mesh);
  beforeAll(async () => {
    mesh = await start();
  });
  afterEach(() => mesh.clear());
  afterAll(async () => await mesh?.[Symbol.asyncDispose]());

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
    await mesh.restart();
    gate.resolve();
    await becomes(id, { state: "succeeded", attempts: 1 });
    // The piece whose sender was killed may have been written.
    expect(pump.count("OTA.Write")).toBeLessThanOrEqual(Math.ceil(image.length / 16_000) + 2);
  });

  test("a device that was not asked to fetch before its leader was killed is asked by the next one", async () => {
    const pump = add("pump", {
      onUpdate() {
        pump.install();
        return { sent: true, outcome: "gone" };
      },
    });
    const device = mesh.devices.get("pump");
    const answer = device?.answer;
    if (device === undefined || answer === undefined) throw new Error("no device");
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    let isHeld = true;
    device.answer = (func, params) => {
      if (func !== "OTA.Update" || !isHeld) return answer(func, params);
      resolve();
      return new Promise<never>(() => undefined);
    };
    const id = await create({ via: "url" });
    await asked;
    await mesh.service.end("SIGKILL");
    isHeld = false;
    await mesh.restart();
    await eventually(async () => (await only(id)).state === "succeeded", { withinMs: 120_000 });
    expect(pump.installed).toBe(1);
  }, 180_000);

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
    await mesh.service.end("SIGKILL");
    isHeld = false;
    await mesh.restart();
    await becomes(id, { state: "succeeded", attempts: 1 });
    expect(pump.installed).toBe(1);
  });

  test.each([
    ["the end of the file was answered, while it reboots", "OTA.End", 1, 3_000],
    ["the end of the file was answered, after its reboot", "OTA.End", 1, 50],
    ["its last piece was answered", "OTA.Write", Math.ceil(image.length / 16_000), 50],
  ] as const)(
    "a device installs a file once, though its leader was killed before %s",
    async (_, last, count, awayMs) => {
      const pump = add("pump", { awayMs });
      const device = mesh.devices.get("pump");
      if (device === undefined) throw new Error("no device");
      const { answer } = device;
      let isHeld = false;
      device.answer = async (func, params) => {
        const given = await answer(func, params);
        if (isHeld || func !== last || pump.count(func) < count) return given;
        isHeld = true;
        return await new Promise<never>(() => undefined);
      };
      const id = await create({ via: "push" });
      await eventually(() => isHeld);
      await mesh.restart();
      await becomes(id, { state: "succeeded", attempts: 1 });
      expect(pump.installed).toBe(1);
    },
  );

  test("an offer that its leader did not make before it was killed is made, with another ticket", async () => {
    const gate = Promise.withResolvers<void>();
    const pump = mesh.add("pump", { online: true, listens: true, patch: () => gate.promise });
    const id = await create({ via: "shadow" });
    await becomes(id, { stage: "transferring" });
    await mesh.service.end("SIGKILL");
    delete pump.patch;
    await mesh.restart();
    await eventually(() => pump.desired.ota !== undefined);
    gate.resolve();
    await mesh.report("pump", { ota: { fw_version: "2.0" } });
    await becomes(id, { state: "succeeded", attempts: 1 });
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
    await mesh.service.end("SIGKILL");
    device.answer = answer;
    await mesh.restart({ JOBS_HOLD: "true" });
    const begun = pump.count("OTA.Begin");
    await sleep(3_000);
    expect(pump.count("OTA.Begin")).toBe(begun);
    expect(await only(id)).toMatchObject({ state: "queued", attempts: 1 });
    await eventually(() => mesh.changeJob(id, { state: "running" }));
    await becomes(id, { state: "succeeded", attempts: 2 });
  });
});
