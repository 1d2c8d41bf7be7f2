import { createCallContext } from "@devmesh/service-kit/context";
import { eventually } from "@devmesh/testkit/eventually";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type BridgeProcess, startBridge, startTestMesh, type TestMesh } from "./test-mesh.ts";

let mesh: TestMesh;
let bridge: BridgeProcess;

beforeAll(async () => {
  mesh = await startTestMesh();
  bridge = await startBridge(mesh);
});

afterAll(async () => {
  await bridge?.[Symbol.asyncDispose]();
  await mesh?.[Symbol.asyncDispose]();
});

async function answeringDevice(): Promise<MqttDevice> {
  const device = await mesh.connect("pump");
  await device.answerRpc(() => ({ result: "here" }));
  await device.subscribe("pump/shadow/update/accepted", 1);
  return device;
}

test("after a restart of the broker the bridge calls devices and hears them as before", async () => {
  const before = await answeringDevice();
  expect(await mesh.call({ device_id: "pump" })).toBe("here");
  await before.publish("pump/shadow/update", { state: { reported: { n: 1 } } }, 1);
  await before.awaitMessage("pump/shadow/update/accepted");
  await mesh.broker.kill("SIGKILL");
  await eventually(() => !before.client.connected);
  await mesh.broker.restart();
  await using device = await eventually(answeringDevice, { everyMs: 250 });
  await eventually(() => mesh.call({ device_id: "pump", timeout_ms: 2_000 }), { everyMs: 250 });
  await device.publish("pump/shadow/update", { state: { reported: { n: 2 } }, clientToken: "second" }, 1);
  await device.awaitMessage(
    ({ topic, payload }) => topic === "pump/shadow/update/accepted" && payload.includes("second"),
  );
  expect(mesh.registry.known.get("pump")?.reported).toEqual({ n: 2 });
  await eventually(async () => {
    using call = createCallContext({ timeoutMs: 5_000 });
    return await mesh.bridge.awaitIngestion({}, call);
  });
});
