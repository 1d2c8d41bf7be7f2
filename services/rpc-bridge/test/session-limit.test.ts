import { maxLoginMs } from "@devmesh/contracts/keys";
import { readSessions } from "@devmesh/device-broker/persistent-sessions";
import type { Bus } from "@devmesh/service-kit/bus";
import { systemClock } from "@devmesh/service-kit/clock";
import { createLogger } from "@devmesh/service-kit/logger";
import { eventually } from "@devmesh/testkit/eventually";
import type { StartedService } from "@devmesh/testkit/service-process";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Registry } from "prom-client";
import { createSessionCheck } from "../src/broker-housekeeping/session-limit.ts";
import { createEndSessions } from "../src/broker-housekeeping/wipe-device.ts";
import { deviceOfSession } from "../src/device-topics.ts";
import { createBridgeMetrics } from "../src/metrics.ts";
import { type BridgeFixture, startBridge, startBridgeFixture, unmeasured } from "./bridge-fixture.ts";

let mesh: BridgeFixture;
let bridge: StartedService;
/** As the bridge is connected to account DEVICES. */
let devicesBus: Bus;
const ofThisTest = new AbortController();

beforeAll(async () => {
  mesh = await startBridgeFixture();
  bridge = await startBridge(mesh);
  devicesBus = await mesh.connectDevicesBus();
});

afterAll(async () => {
  ofThisTest.abort();
  await devicesBus?.close();
  await bridge?.[Symbol.asyncDispose]();
  await mesh?.[Symbol.asyncDispose]();
});

/** Connects with a session that outlives the connection. */
async function connectKept(id: string, clientId: string) {
  const device = await mesh.connect(id, { clientId, clean: false });
  expect(await device.subscribe(`${id}/note`, 1)).toBe(1);
  return device;
}

async function leaveSession(id: string, clientId: string): Promise<void> {
  const device = await connectKept(id, clientId);
  await device.leave();
}

/** Client ids of the persistent sessions of a device, the one that changed longest ago first. */
async function keptSessions(id: string): Promise<string[]> {
  const clientIds: string[] = [];
  for await (const session of readSessions(devicesBus, 1, ofThisTest.signal))
    if (!session.clean && deviceOfSession(session) === id) clientIds.push(session.clientId);
  return clientIds;
}

describe("a device has at most ten kept sessions", () => {
  test("an eleventh ends the oldest that is away, and nobody else's", async () => {
    await using connected = await connectKept("pump", "pump:connected");
    await leaveSession("valve", "valve");
    const away = ["pump", "GENERATEDgenerated1234", ...Array.from({ length: 8 }, (_, n) => `pump:${n}`)];
    for (const clientId of away) await leaveSession("pump", clientId);

    await eventually(async () => (await keptSessions("pump")).length <= 10);
    expect(await keptSessions("pump")).toEqual(["pump:connected", ...away.slice(1)]);
    expect(await keptSessions("valve")).toEqual(["valve"]);
    await connected.publish("pump/note", "a sign", 1);
    await connected.awaitMessage("pump/note");
    await eventually(
      async () => (await bridge.metric('devmesh_device_sessions_ended_total{why="too_many"}')) === 1,
    );

    await leaveSession("pump", "pump:last");
    await eventually(async () => (await keptSessions("pump")).length <= 10);
    expect(await keptSessions("pump")).toEqual(["pump:connected", ...away.slice(2), "pump:last"]);
  });

  test("of a flood of 150, ten are left", async () => {
    const atOnce = 10;
    for (let at = 0; at < 150; at += atOnce)
      await Promise.all(Array.from({ length: atOnce }, (_, n) => leaveSession("flood", `flood:${at + n}`)));
    await eventually(async () => (await keptSessions("flood")).length <= 10);
    expect(await keptSessions("flood")).toHaveLength(10);
    expect(await keptSessions("valve")).toEqual(["valve"]);
  });
});

test("a kept session ends when its client has been away for longer than the setting, a connected one never", async () => {
  await using connected = await connectKept("lamp", "lamp");
  await leaveSession("lamp", "lamp:away");
  let aheadMs = 0;
  const registry = new Registry();
  const check = createSessionCheck({
    bus: devicesBus,
    connectedClientIds: mesh.registry.connectedClientIds,
    endSessions: createEndSessions(mesh.brokerLogin),
    keptHours: 2,
    metrics: createBridgeMetrics(registry, unmeasured),
    report: () => undefined,
    clock: { ...systemClock, now: () => new Date(Date.now() + aheadMs) },
    log: createLogger({ service: "test", level: "silent" }),
    signal: ofThisTest.signal,
  });

  const hourMs = 3_600_000;
  for (const ahead of [0, maxLoginMs + hourMs]) {
    aheadMs = ahead;
    await check();
    expect(await keptSessions("lamp")).toEqual(["lamp", "lamp:away"]);
  }
  aheadMs = maxLoginMs + 2 * hourMs;
  await check();
  expect(await keptSessions("lamp")).toEqual(["lamp"]);
  await connected.publish("lamp/note", "a sign", 1);
  await connected.awaitMessage("lamp/note");
  expect(await registry.getSingleMetricAsString("devmesh_device_sessions_ended_total")).toMatch(
    /why="expired"\} \d+$/m,
  );
});
