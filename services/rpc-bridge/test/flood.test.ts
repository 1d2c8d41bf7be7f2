import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import { ensureDeviceConsumer } from "@devmesh/device-broker/mqtt-stream";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { eventually } from "@devmesh/testkit/eventually";
import { describe, expect, test } from "@jest/globals";
import { shareBridge } from "./bridge-fixture.ts";

describe("a device that floods the mesh", () => {
  const storage = 2 * 1024 * 1024;
  const shared = shareBridge({ DEVICE_MESSAGE_RATE: "1", DEVICE_STREAM_MAX_BYTES: String(storage) });

  test("with updates has those beyond its allowance rejected, and holds up nobody else's", async () => {
    await using flooding = await shared.mesh.connect("flood");
    await using calm = await shared.mesh.connect("calm");
    await flooding.subscribe("flood/shadow/update/rejected");
    await calm.subscribe("calm/shadow/update/accepted");
    const update = (n: number) => ({ state: { reported: { n } }, clientToken: `${n}` });
    await Promise.all(
      Array.from({ length: 1_000 }, (_, n) => flooding.publish("flood/shadow/update", update(n), 1)),
    );
    await calm.publish("calm/shadow/update", update(0), 1);
    await calm.awaitMessage("calm/shadow/update/accepted");
    const applied = () => (shared.mesh.registry.known.get("flood")?.version ?? 0) - 1;
    await eventually(() => applied() + flooding.messages.length === 1_000);
    const rejections = flooding.messages.map(({ payload }) => JSON.parse(payload));
    const burst = 20;
    expect(rejections[0]).toEqual({
      code: 429,
      message: "too many updates a second",
      // Time passes while they are sent, and fills the bucket.
      clientToken: expect.stringMatching(/^\d+$/),
    });
    expect(Number(rejections[0].clientToken)).toBeGreaterThanOrEqual(burst);
    expect(applied()).toBeGreaterThanOrEqual(burst);
    expect(await shared.bridge.metric('devmesh_device_messages_dropped_total{why="too_many"}')).toBe(
      rejections.length,
    );
  });

  test("with replies that nobody waits for reaches nobody, and with more of them than its call needs is cut off", async () => {
    await using flooding = await shared.mesh.connect("flood");
    await using calm = await shared.mesh.connect("calm");
    await calm.answerRpc(() => ({ result: "here" }));
    const ignored = () => shared.bridge.metric('devmesh_rpc_replies_ignored_total{why="unexpected"}');
    const before = await ignored();
    const flood = async (topic: string) => {
      for (let n = 0; n < 1_999; n++) void flooding.publish(topic, { id: -1, result: n });
      // At QoS 1: acknowledged after all that came before it.
      await flooding.publish(topic, { id: -1, result: 1_999 }, 1);
    };
    await flood("flood/r/rpc");
    expect(await shared.mesh.call({ device_id: "calm" })).toBe("here");
    expect(await ignored()).toBe(before);

    await flooding.subscribe("flood/rpc");
    const call = shared.mesh.call({ device_id: "flood", timeout_ms: 5_000 }).catch((error: unknown) => error);
    const { src } = JSON.parse((await flooding.awaitMessage("flood/rpc")).payload);
    await flood(`${src}/rpc`);
    expect(await shared.mesh.call({ device_id: "calm" })).toBe("here");
    expect(await ignored()).toBe(before + 100);
    expect(await call).toMatchObject({ reason: "rpc_timeout" });
    await flooding.answerRpc(() => ({ result: "well again" }));
    expect(await shared.mesh.call({ device_id: "flood" })).toBe("well again");
  });

  test("with events at QoS 0 faster than they are read has them dropped by the broker, and later ones arrive", async () => {
    await using flooding = await shared.mesh.connect("flood");
    await using calm = await shared.mesh.connect("calm");
    await calm.subscribe("calm/shadow/update/accepted");
    const dropped = () => shared.bridge.metric('devmesh_device_messages_dropped_total{why="too_many"}');
    const before = await dropped();
    shared.bridge.child.kill("SIGSTOP");
    try {
      for (let n = 0; n < 10_000; n++) void flooding.publish("flood/event/x", n);
      // At QoS 1: acknowledged after all that came before it.
      await flooding.publish("flood/event/x", 10_000, 1);
    } finally {
      shared.bridge.child.kill("SIGCONT");
    }
    const update = { state: { reported: { n: 1 } } };
    for (let n = 0; n < 3; n++) {
      calm.forget();
      await calm.publish("calm/shadow/update", update, 0);
      await calm.awaitMessage("calm/shadow/update/accepted");
    }
    expect((await dropped()) - before).toBeLessThanOrEqual(2_000);
    const taken = () =>
      shared.bridge.metric('devmesh_device_messages_total{consumer="rpc-bridge",outcome="ok"}');
    // Five windows in all. What is left of a window when the next one is asked for has room for the rest of one round
    // and for another one.
    for (let round = 0; round < 20; round++) {
      const handled = await taken();
      for (let n = 0; n < 100; n++) void flooding.publish("flood/event/x", n);
      await eventually(async () => (await taken()) >= handled + 100);
    }
  });

  test("into a session that it never comes back to does not fill the broker for everybody", async () => {
    const kept = await shared.mesh.connect("flood", { clientId: "flood:kept", clean: false });
    expect(await kept.subscribe("flood/event/#", 1)).toBe(1);
    await kept.leave();
    await using calm = await shared.mesh.connect("calm");
    const block = "x".repeat(64 * 1024);
    for (let sent = 0; sent < 3 * storage; sent += block.length) {
      // A full broker closes the connection; the device comes again.
      await eventually(async () => {
        await using flooding = await shared.mesh.connect("flood");
        const refused = flooding.closed().then(() => false);
        return await Promise.race([
          flooding.publish("flood/event/block", block, 1).then(() => true),
          refused,
        ]);
      });
    }
    await calm.publish("calm/shadow/update", { state: { reported: { alive: true } } }, 1);
    await eventually(() => shared.mesh.registry.known.get("calm")?.reported.alive === true);
    expect(await shared.bridge.metric("devmesh_device_queued_messages_dropped_total")).toBeGreaterThan(0);
    // Ends the session: what it still keeps would take room from later tests.
    await (await shared.mesh.connect("flood", { clientId: "flood:kept" })).leave();
  });

  test("with retained messages has them cleared, and nobody else's", async () => {
    await using calm = await shared.mesh.connect("calm");
    await calm.publish("calm/event/kept", "1", 1, true);
    await shared.mesh.registry.publishUpdated("calm");
    await calm.subscribe("calm/shadow/delta");
    await calm.awaitMessage("calm/shadow/delta");
    await using flooding = await shared.mesh.connect("flood");
    const block = "x".repeat(64 * 1024);
    for (let n = 0; n < 32; n++) await flooding.publish(`flood/note/${n}`, block, 1, true);
    await eventually(
      async () => (await shared.bridge.metric("devmesh_device_retained_messages_cleared_total")) >= 32,
    );
    await using later = await shared.mesh.connect("calm", { clientId: "calm:later" });
    await later.subscribe("calm/event/kept");
    await later.subscribe("calm/shadow/delta");
    await later.awaitMessage("calm/event/kept");
    await later.awaitMessage("calm/shadow/delta");
  });

  test("with messages at QoS 2 that it never releases has them dropped", async () => {
    const dropped = () => shared.bridge.metric("devmesh_device_queued_messages_dropped_total");
    const before = await dropped();
    for (const clientId of ["flood:1", "flood:2", "flood:3"]) {
      const cut = await shared.mesh.connect("flood", { clientId });
      cut.client.on("packetreceive", ({ cmd }) => {
        if (cmd === "pubrec") cut.vanish();
      });
      void cut.publish("flood/event/block", "x".repeat(600_000), 2).catch(() => undefined);
      await cut.closed();
    }
    await eventually(async () => (await dropped()) > before);
  });

  test("with what waits for services is reported, so that it is kept out of the broker", async () => {
    const data = await shared.mesh.connectDevicesBus("data");
    await ensureDeviceConsumer(data, "data");
    await data.close();
    const reported: string[] = [];
    const listening = subscribe(
      shared.mesh.tester,
      { events: rpcEvents, names: ["hoarding"] },
      { hoarding: ({ id }) => void reported.push(id) },
      { mode: "each" },
    );
    await shared.mesh.tester.flush();
    await using calm = await shared.mesh.connect("calm");
    await using flooding = await shared.mesh.connect("flood");
    await calm.publish("db/calm/n", "1", 1);
    // Nobody stores records here. Beyond half of the room, and below all of it.
    for (let n = 0; n < 19; n++) await flooding.publish("db/flood/block", "x".repeat(64 * 1024), 1);
    await eventually(() => reported.length > 0);
    expect(new Set(reported)).toEqual(new Set(["flood"]));
    await listening.stop();
  });
});
