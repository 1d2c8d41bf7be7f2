import { createMetrics } from "@devmesh/service-kit/metrics";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { expect, test } from "@jest/globals";
import { createInFlightCalls } from "../src/calls/in-flight-calls.ts";
import { createBridgeMetrics } from "../src/metrics.ts";
import { replyHandler } from "../src/rpc-bridge.ts";
import { unmeasured } from "./bridge-fixture.ts";

test("a reply of a device that owes none is counted and not read", async () => {
  const calls = createInFlightCalls({ clock: new ManualClock(), maxInFlight: 10 });
  const metrics = createBridgeMetrics(createMetrics().registry, unmeasured);
  const handle = replyHandler(calls, metrics);
  const ignored = async (why: string) => {
    const { values } = await metrics.repliesIgnored.get();
    return values.find(({ labels }) => labels.why === why)?.value ?? 0;
  };
  const unreadable = Buffer.from("not JSON");

  const call = calls.open("pump", 1_000);
  handle("valve", unreadable);
  expect(await ignored("unexpected")).toBe(1);
  handle("pump", unreadable);
  expect(await ignored("unreadable")).toBe(1);
  handle("pump", Buffer.from(JSON.stringify({ id: call?.id, result: 1 })));
  expect(await call?.outcome).toEqual({ kind: "result", result: 1 });
  handle("pump", Buffer.from(JSON.stringify({ id: call?.id, result: 2 })));
  expect(await ignored("unexpected")).toBe(2);
});
