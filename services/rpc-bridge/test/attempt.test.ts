import type { CallFrame } from "@devmesh/contracts/mqtt";
import { eventually } from "@devmesh/testkit/eventually";
import type { StartedService } from "@devmesh/testkit/service-process";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type BridgeFixture, startBridge, startBridgeFixture } from "./bridge-fixture.ts";

let mesh: BridgeFixture;
let bridge: StartedService;

beforeAll(async () => {
  mesh = await startBridgeFixture();
  bridge = await startBridge(mesh, { RPC_MAX_IN_FLIGHT: "2" });
});
afterAll(async () => {
  await bridge?.[Symbol.asyncDispose]();
  await mesh?.[Symbol.asyncDispose]();
});

describe("an attempt at a call", () => {
  test("returns what the device answers", async () => {
    await using device = await mesh.connect("pump");
    await device.answerRpc(({ method, params, src, id }) => {
      if (method === "Echo") return { result: params ?? null };
      if (method === "Garbled") device.client.publish(`${src}/rpc`, JSON.stringify({ id, error: "text" }));
      if (method === "Garbled" || method === "Silent") return null;
      return { error: { code: method === "Fail" ? 500 : 404, message: "no" } };
    });
    const attempt = (method: string, timeout_ms = 30_000) =>
      mesh.attempt({ device_id: "pump", method, timeout_ms, params: [1] });
    expect(await attempt("Echo")).toEqual({ sent: true, outcome: "result", result: [1] });
    expect(await attempt("Fail")).toEqual({
      sent: true,
      outcome: "error",
      error: { code: 500, message: "no" },
    });
    expect(await attempt("Missing")).toEqual({ sent: true, outcome: "no_such_function" });
    expect(await attempt("Garbled")).toEqual({ sent: true, outcome: "unreadable" });
    expect(await attempt("Silent", 100)).toEqual({ sent: true, outcome: "timeout" });
  });

  test("sends nothing to a device that is unknown, away, or connected and not subscribed", async () => {
    const nobody = { sent: false, outcome: "nobody_listens" };
    expect(await mesh.attempt({ device_id: "unknown" })).toEqual(nobody);
    await using device = await mesh.connect("lamp", { clean: false });
    expect(await mesh.attempt({ device_id: "lamp" })).toEqual(nobody);
    await device.subscribe("lamp/rpc", 1);
    await device.leave();
    expect(await mesh.attempt({ device_id: "lamp" })).toEqual(nobody);
    // What a kept session would have queued arrives before this.
    await using again = await mesh.connect("lamp", { clean: false });
    const answer = mesh.attempt({ device_id: "lamp", method: "First" });
    const frame: CallFrame = JSON.parse((await again.awaitMessage("lamp/rpc")).payload);
    expect(frame.method).toBe("First");
    await again.publish(`${frame.src}/rpc`, { id: frame.id });
    expect(await answer).toEqual({ sent: true, outcome: "result", result: null });
  });

  test("sends nothing where the frame is too large, or too many calls wait", async () => {
    await using device = await mesh.connect("fan");
    await device.subscribe("fan/rpc");
    const params = ["x".repeat(5_000)];
    expect(await mesh.attempt({ device_id: "fan", params })).toEqual({ sent: false, outcome: "too_large" });
    const waiting = [1, 2].map((nth) => mesh.attempt({ device_id: "fan", params: [nth] }));
    await eventually(() => device.messages.length === 2);
    expect(await mesh.attempt({ device_id: "fan" })).toEqual({ sent: false, outcome: "busy" });
    const frames = device.messages.map(({ payload }): CallFrame => JSON.parse(payload));
    for (const { src, id } of frames) await device.publish(`${src}/rpc`, { id });
    for (const one of waiting) expect(await one).toEqual({ sent: true, outcome: "result", result: null });
    expect(device.messages).toHaveLength(2);
  });

  test("ends as sent where the device goes away before it answers", async () => {
    await using device = await mesh.connect("drum");
    await device.subscribe("drum/rpc");
    const attempt = mesh.attempt({ device_id: "drum" });
    await device.awaitMessage("drum/rpc");
    mesh.registry.known.delete("drum");
    await mesh.registry.events.deleted({ id: "drum", timestamp: new Date().toISOString() });
    expect(await attempt).toEqual({ sent: true, outcome: "gone" });
  });
});
