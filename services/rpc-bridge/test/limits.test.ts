import type { CallFrame } from "@devmesh/contracts/mqtt";
import { eventually } from "@devmesh/testkit/eventually";
import { describe, expect, test } from "@jest/globals";
import { shareBridge } from "./bridge-fixture.ts";

const shared = shareBridge({ RPC_MAX_IN_FLIGHT: "2", RPC_MAX_FRAME_BYTES: "256" });

describe("the bridge's limits", () => {
  test("one call more than may wait is too_many_calls, and there is room again when one has ended", async () => {
    await using device = await shared.mesh.connect("pump");
    await device.subscribe("pump/rpc");
    const waiting = [shared.mesh.call({ device_id: "pump" }), shared.mesh.call({ device_id: "pump" })];
    await eventually(() => device.messages.length === 2);
    await expect(shared.mesh.call({ device_id: "pump" })).rejects.toMatchObject({
      code: "resource_exhausted",
      reason: "too_many_calls",
    });
    for (const { payload } of device.messages) {
      const { id } = JSON.parse(payload) as CallFrame;
      await device.publish("pump/r/rpc", { id, result: id });
    }
    await Promise.all(waiting);
    await device.answerRpc(() => ({ result: "room" }));
    expect(await shared.mesh.call({ device_id: "pump" })).toBe("room");
  });

  test("the size of a frame is a setting", async () => {
    await using _device = await shared.mesh.connect("pump");
    await expect(shared.mesh.call({ device_id: "pump", params: "x".repeat(256) })).rejects.toMatchObject({
      reason: "frame_too_large",
    });
  });

  test("a flood at QoS 0 while the registry is away is cut, one at QoS 1 is not, and another device loses nothing", async () => {
    await using flooding = await shared.mesh.connect("flood");
    await using calm = await shared.mesh.connect("calm");
    await using quiet = await shared.mesh.connect("quiet");
    await shared.mesh.registry.stopServing();
    for (let n = 0; n < 1_500; n++)
      void flooding.publish("flood/shadow/update", { state: { reported: { n } } });
    const dropped = () => shared.bridge.metric('devmesh_device_messages_dropped_total{why="overload"}');
    const givenUp = () => shared.bridge.metric('devmesh_device_messages_dropped_total{why="failed"}');
    await eventually(async () => (await dropped()) > 0);
    for (let n = 0; n < 20; n++) {
      await calm.publish("calm/shadow/update", { state: { reported: { n } } }, 1);
      await quiet.publish("quiet/shadow/update", { state: { reported: { n } } });
    }
    shared.mesh.registry.serveAgain();
    for (const id of ["calm", "quiet"]) {
      await eventually(() => shared.mesh.registry.known.get(id)?.version === 21);
      expect(shared.mesh.registry.known.get(id)?.reported).toEqual({ n: 19 });
    }
    const applied = () => (shared.mesh.registry.known.get("flood")?.version ?? 0) - 1;
    // On a slow machine some have waited for their ten seconds before all had come: each leaves room for another.
    await eventually(async () => applied() + (await givenUp()) >= 200);
    expect(applied() + (await dropped()) + (await givenUp())).toBeLessThanOrEqual(1_500);
    if ((await givenUp()) === 0) expect(applied()).toBe(200);
  });
});
