import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { eventually } from "@devmesh/testkit/eventually";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { expect, test } from "@jest/globals";
import { shareBridge } from "./bridge-fixture.ts";

const shared = shareBridge();

async function answeringDevice(): Promise<MqttDevice> {
  const device = await shared.mesh.connect("pump");
  await device.answerRpc(() => ({ result: "here" }));
  await device.subscribe("pump/shadow/update/accepted", 1);
  return device;
}

test("after a restart of the broker the bridge calls devices and gets their answers as before", async () => {
  const before = await answeringDevice();
  expect(await shared.mesh.call({ device_id: "pump" })).toBe("here");
  await before.publish("pump/shadow/update", { state: { reported: { n: 1 } } }, 1);
  await before.awaitMessage("pump/shadow/update/accepted");
  await shared.mesh.broker.kill("SIGKILL");
  await eventually(() => !before.client.connected);
  await shared.mesh.broker.restart();
  await using device = await eventually(answeringDevice, { everyMs: 250 });
  await eventually(() => shared.mesh.call({ device_id: "pump", timeout_ms: 2_000 }), { everyMs: 250 });
  await device.publish("pump/shadow/update", { state: { reported: { n: 2 } }, clientToken: "second" }, 1);
  await device.awaitMessage(
    ({ topic, payload }) => topic === "pump/shadow/update/accepted" && payload.includes("second"),
  );
  expect(shared.mesh.registry.known.get("pump")?.reported).toEqual({ n: 2 });
  await eventually(async () => {
    using call = createCallContext({ timeoutMs: 5_000 });
    return await shared.mesh.bridge.readBacklog({}, call);
  });
});

test("a session that a device keeps brings it what it subscribed to after a kill of the broker, without subscribing again", async () => {
  const session = { clean: false, clientId: "valve" };
  const before = await shared.mesh.connect("valve", session);
  expect(await before.subscribe("valve/shadow/delta", 1)).toBe(1);
  await before.leave();
  await shared.mesh.broker.kill("SIGKILL");
  await shared.mesh.broker.restart();
  await using after = await eventually(() => shared.mesh.connect("valve", session), { everyMs: 250 });
  shared.mesh.registry.add("valve", { desired: { on: true } });
  await shared.mesh.registry.publishUpdated("valve");
  await after.awaitMessage(
    ({ topic, payload }) => topic === "valve/shadow/delta" && payload.includes('"on"'),
  );
});
