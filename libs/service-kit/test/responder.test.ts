import { startBuses } from "@devmesh/testkit/sample-mesh/buses";
import { expect, test } from "@jest/globals";
import type { ConnectionUse } from "../src/connection/bus.ts";
import { natsConnection } from "../src/connection/nats-connection.ts";
import { startResponder } from "../src/connection/responder.ts";

test("a bus that leaves two servers at once leaves no subscription behind", async () => {
  await using buses = await startBuses();
  const serving = await buses.connect("greeter");
  const calling = await buses.connect("caller");
  const uses: ConnectionUse[] = [];
  const bus = { ...serving, connected: true, leaveAfter: (use: ConnectionUse) => void uses.push(use) };
  let answered = 0;
  const answer = async () => void answered++;
  const { stop } = startResponder(bus, "greeter", new Map([["greetings", answer]]));
  const requests = uses[0]?.requests;
  const publish = async () => {
    calling[natsConnection].publish("greetings");
    await calling.flush();
    await serving.flush();
  };
  await Promise.all([requests?.pause(), requests?.pause()]);
  await publish();
  expect(answered).toBe(0);
  requests?.resume();
  requests?.resume();
  await serving.flush();
  await publish();
  expect(answered).toBe(1);
  await stop();
  await publish();
  expect(answered).toBe(1);
});
