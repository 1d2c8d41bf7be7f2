import { streamManager } from "@devmesh/service-kit/connection/streams";
import { eventually } from "@devmesh/testkit/eventually";
import { startBroker } from "@devmesh/testkit/sample-mesh/broker";
import { expect, test } from "@jest/globals";
import { publishDataCanary, watchBrokerStorage } from "../src/broker-canary.ts";
import { mqttStream } from "../src/broker-subjects.ts";
import { pullDeviceMessages } from "../src/device-stream.ts";
import { ensureDeviceConsumer, provisionDeviceStream } from "../src/mqtt-stream.ts";

test("a canary is stored for its service, which takes it without handling it; a full stream is told from a failing one", async () => {
  await using broker = await startBroker();
  const data = await broker.connect("data.devices");
  const bridge = await broker.connect("rpc-bridge.devices");
  const done = new AbortController();
  const { signal } = done;
  const canary = watchBrokerStorage({
    bus: data,
    publish: () => publishDataCanary(data),
    connected: () => data.connected,
    signal,
  });
  const found = async () => ({ isStoring: await canary.isStoring(), hasRoom: await canary.hasRoom() });
  // The stream is not there before the first MQTT login: other checks of readiness say so.
  expect(await found()).toEqual({ isStoring: true, hasRoom: true });

  const maxBytes = 2_000_000;
  const provisioned = provisionDeviceStream(bridge, { maxBytes, signal });
  const mqtt = await broker.bridge();
  await provisioned;
  await ensureDeviceConsumer(data, "data");
  const { streams } = await streamManager(bridge);
  await eventually(async () => (await streams.info(mqttStream)).state.messages > 0);
  expect(await found()).toEqual({ isStoring: true, hasRoom: true });

  const block = Buffer.alloc(100_000);
  const free = async () => maxBytes - (await streams.info(mqttStream)).state.bytes;
  while ((await free()) > block.length + 10_000) await mqtt.publish("db/pump-1/block", block, 1);
  const fill = async () => {
    for (;;) await mqtt.publish("db/pump-1/block", "", 1);
  };
  await Promise.race([fill().catch(() => undefined), mqtt.closed()]);
  const fillWithCanaries = async () => {
    for (;;) await publishDataCanary(data);
  };
  await expect(fillWithCanaries()).rejects.toThrow("maximum bytes exceeded");
  await eventually(async () => !(await found()).hasRoom);
  expect(await found()).toEqual({ isStoring: true, hasRoom: false });

  const subjects = new Set<string>();
  const options = { durable: "data", batch: 100, maxWaitMs: 0, signal } as const;
  const pulling = pullDeviceMessages(data, options, async (messages) => {
    for (const { subject } of messages) subjects.add(subject);
  });
  await eventually(async () => (await streams.info(mqttStream)).state.messages === 0);
  await eventually(async () => (await found()).hasRoom);
  expect([...subjects]).toEqual(["db.pump-1.block"]);
  await mqtt.client.endAsync(true);
  done.abort();
  await Promise.all([pulling, canary.ended]);
});
