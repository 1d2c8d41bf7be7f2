import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDeviceAllowance } from "../src/device-allowance.ts";
import { type BridgeProcess, startBridge, startTestMesh, type TestMesh } from "./test-mesh.ts";

describe("the allowance of a device", () => {
  test("is a bucket that fills with the time at which messages were sent", () => {
    const allowance = createDeviceAllowance(10, 20);
    const taken = (sentAt: number, count: number) =>
      Array.from({ length: count }, () => allowance.take("pump", sentAt)).filter(Boolean).length;
    expect(taken(0, 30)).toBe(20);
    expect(taken(500, 30)).toBe(5);
    // What comes late, out of order, fills nothing.
    expect(taken(100, 30)).toBe(0);
    expect(taken(60_000, 30)).toBe(20);
  });

  test("of one device is not another's", () => {
    const allowance = createDeviceAllowance(1, 1);
    expect(["a", "a", "b"].map((id) => allowance.take(id, 0))).toEqual([true, false, true]);
  });

  test("lets pass what a modest device sent while nobody handled it, however long that was", () => {
    const allowance = createDeviceAllowance(10, 20);
    const sent = Array.from({ length: 5_000 }, (_, n) => n * 110);
    expect(sent.every((sentAt) => allowance.take("pump", sentAt))).toBe(true);
  });
});

describe("a device that floods the mesh", () => {
  const storage = 2 * 1024 * 1024;
  let mesh: TestMesh;
  let bridge: BridgeProcess;
  beforeAll(async () => {
    mesh = await startTestMesh();
    const env = { DEVICE_MESSAGE_RATE: "20", DEVICE_STREAM_MAX_BYTES: String(storage) };
    bridge = await startBridge(mesh, env);
  });
  afterAll(async () => {
    await bridge?.[Symbol.asyncDispose]();
    await mesh?.[Symbol.asyncDispose]();
  });

  test("with updates has those beyond its allowance rejected, and holds up nobody else's", async () => {
    await using flooding = await mesh.connect("flood");
    await using calm = await mesh.connect("calm");
    await flooding.subscribe("flood/shadow/update/rejected");
    await calm.subscribe("calm/shadow/update/accepted");
    const update = (n: number) => ({ state: { reported: { n } }, clientToken: `${n}` });
    await Promise.all(
      Array.from({ length: 1_000 }, (_, n) => flooding.publish("flood/shadow/update", update(n), 1)),
    );
    await calm.publish("calm/shadow/update", update(0), 1);
    await calm.awaitMessage("calm/shadow/update/accepted");
    await eventually(() => flooding.messages.length >= 500);
    const rejections = flooding.messages.map(({ payload }) => JSON.parse(payload));
    expect(rejections[0]).toEqual({ code: 429, message: "too many updates a second", clientToken: "400" });
    const applied = (mesh.registry.known.get("flood")?.version ?? 0) - 1;
    expect(applied).toBeGreaterThanOrEqual(400);
    expect(applied + rejections.length).toBe(1_000);
    expect(await bridge.metric('devmesh_device_messages_dropped_total{why="too_many"}')).toBe(
      rejections.length,
    );
  });

  test("into a session that it never comes back to does not fill the broker for everybody", async () => {
    const kept = await mesh.connect("flood", { clientId: "flood:kept", clean: false });
    expect(await kept.subscribe("flood/event/#", 1)).toBe(1);
    await kept.leave();
    await using calm = await mesh.connect("calm");
    const block = "x".repeat(64 * 1024);
    for (let sent = 0; sent < 3 * storage; sent += block.length) {
      // A full broker closes the connection; the device comes again.
      await eventually(async () => {
        await using flooding = await mesh.connect("flood");
        const refused = flooding.closed().then(() => false);
        return await Promise.race([
          flooding.publish("flood/event/block", block, 1).then(() => true),
          refused,
        ]);
      });
    }
    await calm.publish("calm/shadow/update", { state: { reported: { alive: true } } }, 1);
    await eventually(() => mesh.registry.known.get("calm")?.reported.alive === true);
    expect(await bridge.metric("devmesh_device_queued_messages_dropped_total")).toBeGreaterThan(0);
  });

  test("with retained messages has them cleared, and nobody else's", async () => {
    await using calm = await mesh.connect("calm");
    await calm.publish("calm/event/kept", "1", 1, true);
    await mesh.registry.tellUpdated("calm");
    await calm.subscribe("calm/shadow/delta");
    await calm.awaitMessage("calm/shadow/delta");
    await using flooding = await mesh.connect("flood");
    const block = "x".repeat(64 * 1024);
    for (let n = 0; n < 32; n++) await flooding.publish(`flood/note/${n}`, block, 1, true);
    await eventually(
      async () => (await bridge.metric("devmesh_device_retained_messages_cleared_total")) >= 32,
    );
    await using later = await mesh.connect("calm", { clientId: "calm:later" });
    await later.subscribe("calm/event/kept");
    await later.subscribe("calm/shadow/delta");
    await later.awaitMessage("calm/event/kept");
    await later.awaitMessage("calm/shadow/delta");
  });

  test("with messages at QoS 2 that it never releases has them dropped", async () => {
    const dropped = () => bridge.metric("devmesh_device_queued_messages_dropped_total");
    const before = await dropped();
    for (const clientId of ["flood:1", "flood:2", "flood:3"]) {
      const cut = await mesh.connect("flood", { clientId });
      cut.client.on("packetreceive", ({ cmd }) => {
        if (cmd === "pubrec") cut.vanish();
      });
      void cut.publish("flood/event/block", "x".repeat(600_000), 2).catch(() => undefined);
      await cut.closed();
    }
    await eventually(async () => (await dropped()) > before);
  });
});
