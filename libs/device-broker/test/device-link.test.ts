import { mqttBounds } from "@devmesh/contracts/mqtt";
import type { Bus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { eventually } from "@devmesh/testkit/eventually";
import { type SampleBroker, startBroker } from "@devmesh/testkit/sample-mesh/broker";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createDeviceLink, type DeviceLinkOptions } from "../src/device-link.ts";

const user = "rpc-bridge.devices";
/** Their replies need more subscriptions than a connection may have, twice. */
const ids = Array.from({ length: mqttBounds.subscriptions }, (_, at) => `pump-${at}`);

let broker: SampleBroker;
let bus: Bus;
beforeAll(async () => {
  broker = await startBroker();
  bus = await broker.connect(user);
});
afterAll(() => broker.stop());

const linkOf = (options: Pick<DeviceLinkOptions, "connect"> & Partial<DeviceLinkOptions>) =>
  createDeviceLink({ bus, replica: "a", onReply: () => undefined, ...options });

test("replies of any number of devices arrive: further connections have their subscriptions", async () => {
  const replied = new Set<string>();
  let opened = 0;
  const link = linkOf({
    connect: () => broker.connect(user).finally(() => void opened++),
    onReply: (id) => void replied.add(id),
  });
  const lines = await Promise.all(ids.map((id, at) => link.openCall(id, at)));
  const again = await link.openCall("pump-0", ids.length);
  expect(lines).not.toContain(null);
  expect(opened).toBe(2);
  await eventually(() => {
    for (const id of ids) bus[natsConnection].publish(`${id}.r.a.rpc`, "answer");
    return replied.size === ids.length;
  });
  for (const line of [...lines, again]) line?.[Symbol.dispose]();
  // Their places are free again.
  for (const line of await Promise.all(ids.map((id, at) => link.openCall(id, at)))) line?.[Symbol.dispose]();
  expect(opened).toBe(2);
});

test("a call for which no further connection is opened is not sent", async () => {
  const link = linkOf({ connect: () => Promise.reject(new Error("refused")) });
  const lines = await Promise.all(ids.map((id, at) => link.openCall(id, at)));
  expect(lines.filter((line) => line === null).length).toBeGreaterThan(ids.length / 2);
  for (const line of lines) line?.[Symbol.dispose]();
});
