import type { OpenDeviceConnection } from "@devmesh/device-broker/connections";
import { describe, expect, test } from "@jest/globals";
import { acceptedBefore } from "../src/connections/close-connections.ts";

/** How far the clock of the broker's server is ahead of the monotonic one. */
const ahead = 500_000;
const changedMs = 1_000;

/** A connection that a server accepted, and listed, at monotonic times. */
function connection(acceptedAt: number, listedAt: number, serverId = "S1"): OpenDeviceConnection {
  return {
    deviceId: "pump",
    serverId,
    connectionId: 1,
    mqttClientId: "pump",
    address: "10.0.0.1",
    acceptedMs: ahead + acceptedAt,
    listedMs: ahead + listedAt,
    idleMs: 0,
    received: { messages: 0, bytes: 0 },
  };
}

describe("a connection", () => {
  test("is old when it was accepted before the change, however long the listing took", () => {
    const isOld = acceptedBefore(changedMs);
    expect(isOld(connection(990, 1_005), 1_001)).toBe(true);
    expect(isOld(connection(1_000, 7_300), 7_000)).toBe(true);
  });

  test("is not old in a slow listing when an earlier one narrowed down the time of the change", () => {
    const isOld = acceptedBefore(changedMs);
    expect(isOld(connection(990, 1_005), 1_001)).toBe(true);
    expect(isOld(connection(1_020, 7_300), 7_000)).toBe(false);
  });

  test("counts as old while it is not known whether it was accepted before the change", () => {
    expect(acceptedBefore(changedMs)(connection(1_020, 7_300), 7_000)).toBe(true);
  });

  test("is compared by the clock of its own server", () => {
    const isOld = acceptedBefore(changedMs);
    isOld(connection(990, 1_001), 1_001);
    expect(isOld(connection(1_020, 7_300, "S2"), 7_000)).toBe(true);
  });
});
