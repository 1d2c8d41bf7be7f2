import type { CallFrame } from "@devmesh/contracts/mqtt";
import { isReason } from "@devmesh/service-kit/errors";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type BridgeFixture, startBridge, startBridgeFixture } from "./bridge-fixture.ts";

let mesh: BridgeFixture;

beforeAll(async () => {
  mesh = await startBridgeFixture();
});

afterAll(async () => {
  await mesh?.[Symbol.asyncDispose]();
});

describe("a bridge that is stopped", () => {
  test("lets a call in flight finish, gives new ones to its replica, and exits with 0", async () => {
    await using first = await startBridge(mesh, { REPLICA_ID: "one" });
    await using device = await mesh.connect("pump");
    await device.subscribe("pump/rpc");
    const call = mesh.call({ device_id: "pump" });
    const frame = JSON.parse((await device.awaitMessage("pump/rpc")).payload) as CallFrame;
    expect(frame.src).toBe("pump/r/one");
    await using second = await startBridge(mesh, { REPLICA_ID: "two" });
    first.child.kill("SIGTERM");
    device.forget();
    const next = mesh.call({ device_id: "pump" }).catch((error: unknown) => error);
    const nextFrame = JSON.parse((await device.awaitMessage("pump/rpc")).payload) as CallFrame;
    await device.publish(`${nextFrame.src}/rpc`, { id: nextFrame.id, result: "next" });
    await device.publish(`${frame.src}/rpc`, { id: frame.id, result: "finished" });
    expect(await call).toBe("finished");
    expect(await next).toBe("next");
    expect(await first.ended).toBe(0);
    expect(await second.end("SIGTERM")).toBe(0);
  });

  test("ends the calls that still wait near the end of the drain with bridge_restarting", async () => {
    await using bridge = await startBridge(mesh, { DRAIN_MS: "1500" });
    await using device = await mesh.connect("pump");
    await device.subscribe("pump/rpc");
    const call = mesh.call({ device_id: "pump", timeout_ms: 60_000 }).catch((error: unknown) => error);
    await device.awaitMessage("pump/rpc");
    bridge.child.kill("SIGTERM");
    expect(isReason(await call, "bridge_restarting")).toBe(true);
    expect(await bridge.ended).toBe(0);
  });

  test("that is killed leaves the call to its time", async () => {
    await using bridge = await startBridge(mesh);
    await using device = await mesh.connect("pump");
    await device.subscribe("pump/rpc");
    const call = mesh.call({ device_id: "pump", timeout_ms: 3_000 }).catch((error: unknown) => error);
    await device.awaitMessage("pump/rpc");
    await bridge.end("SIGKILL");
    expect(isReason(await call, "deadline_exceeded")).toBe(true);
  });
});
