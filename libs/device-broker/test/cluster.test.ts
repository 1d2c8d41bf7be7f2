import { deviceEvents } from "@devmesh/contracts/devices";
import { mesh } from "@devmesh/contracts/mesh";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { followEvents } from "@devmesh/service-kit/events/event-stream";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { createLogger } from "@devmesh/service-kit/logger";
import { meshUser } from "@devmesh/service-kit/subjects";
import { startCluster, type TestCluster } from "@devmesh/testkit/cluster";
import { eventually } from "@devmesh/testkit/eventually";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type DeviceMessage, pullDeviceMessages } from "../src/device-stream.ts";
import { ensureDeviceConsumer, provisionDeviceStream } from "../src/mqtt-stream.ts";

describe("three clustered servers", () => {
  let folder: TempFolder;
  let cluster: TestCluster;
  const buses: Bus[] = [];
  beforeAll(async () => {
    folder = await tempFolder();
    cluster = await startCluster(folder.path);
  });
  afterAll(async () => {
    await Promise.all(buses.map((bus) => bus[natsConnection].close()));
    await cluster?.stop();
    await folder?.remove();
  });

  async function connect(user: string): Promise<Bus> {
    const name = user.replace(/\.devices$/, "");
    const bus = await connectBus({
      url: cluster.env.NATS_URL,
      name,
      user: user === name ? meshUser(name) : user,
      password: cluster.passwords[user] ?? "",
      streamReplicas: 3,
      log: createLogger({ service: user, level: "silent" }),
    });
    buses.push(bus);
    return bus;
  }

  /** The bridge's own user: its logins make the broker's streams, and it may publish where devices do. */
  const publisherAt = (at: number): Promise<MqttDevice> => {
    const id = "rpc-bridge.devices";
    const url = cluster.servers[at]?.mqttUrl ?? "";
    return connectMqttDevice({ url, id, token: cluster.passwords[id] ?? "", clientId: `_publisher-${at}` });
  };

  test("a stream is made while servers are still missing, once there are enough to keep its copies", async () => {
    const [, second, third] = cluster.servers;
    await Promise.all([second?.kill(), third?.kill()]);
    const bus = await connect("devices");
    const making = createPublisher(bus, deviceEvents);
    await second?.restart();
    await third?.restart();
    const publisher = await making;
    const event = { id: "pump-1", timestamp: new Date().toISOString() };
    await eventually(async () => (await publisher.online(event)) === "ok");
    await eventually(async () => (await cluster.replicasOf("MESH", "EVENTS")) === 3);
    await cluster.caughtUp();
  });

  test("two who follow events get the same ones, none missing and none twice, when the stream's leader dies", async () => {
    const publisher = await createPublisher(await connect("devices"), deviceEvents);
    const stopping = new AbortController();
    const follow = async () => {
      const heard: string[] = [];
      const began = Promise.withResolvers<void>();
      let gaps = -1;
      const done = followEvents(
        await connect("gateway"),
        mesh.gateway.follows,
        {
          began() {
            gaps++;
            began.resolve();
          },
          events: (batch) => heard.push(...batch.map(({ sequence, key }) => `${sequence} ${key}`)),
        },
        stopping.signal,
      );
      await began.promise;
      return { heard, done, gaps: () => gaps };
    };
    const followers = await Promise.all([follow(), follow()]);
    const told: string[] = [];
    let tried = 0;
    const tell = async (count: number) => {
      const enough = told.length + count;
      while (told.length < enough) {
        // Each differs: whoever has received the last one has received all.
        const id = `pump-${tried++}`;
        const event = { id, timestamp: new Date().toISOString() };
        if ((await publisher.online(event)) === "ok") told.push(id);
        // Without a connection it fails at once, and nothing else would come to its turn.
        else await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    await tell(100);
    const leader = await cluster.leaderOf("MESH", "EVENTS");
    await leader.kill();
    await tell(100);
    await leader.restart();
    await cluster.caughtUp();
    await tell(50);
    for (const { heard, gaps } of followers) {
      await eventually(() => told.every((id) => heard.some((line) => line.endsWith(` ${id}`))));
      expect(new Set(heard).size).toBe(heard.length);
      expect(gaps()).toBe(0);
    }
    expect(followers[0]?.heard).toEqual(followers[1]?.heard);
    stopping.abort();
    await Promise.all(followers.map(({ done }) => done));
  });

  test("messages come whole, in order and once, batch by batch, and go on coming when their server dies", async () => {
    // A server that was away may not take logins yet.
    const first = await eventually(() => publisherAt(0));
    const done = new AbortController();
    await provisionDeviceStream(await connect("rpc-bridge.devices"), { signal: done.signal });
    const data = await connect("data.devices");
    await ensureDeviceConsumer(data, "data");
    const seen: DeviceMessage[] = [];
    const sizes: number[] = [];
    const acknowledged: string[] = [];
    /** Ends early, with what was acknowledged, when the server closes the connection. */
    const publish = async (device: MqttDevice, from: number, count: number) => {
      const published = Array.from({ length: count }, async (_, nth) => {
        await device.publish("db/pump-1/n", String(from + nth), 1);
        acknowledged.push(String(from + nth));
      });
      await Promise.race([Promise.allSettled(published), device.closed()]);
    };
    const numberOf = ({ payload }: DeviceMessage) => Buffer.from(payload).toString();
    await publish(first, 0, 1_000);
    const options = { durable: "data", batch: 200, maxWaitMs: 50, signal: done.signal } as const;
    const pulling = pullDeviceMessages(data, options, async (messages) => {
      sizes.push(messages.length);
      seen.push(...messages);
    });
    await eventually(() => seen.length >= 1_000);
    expect(Math.max(...sizes)).toBe(200);
    expect(seen.map(numberOf)).toEqual(Array.from({ length: 1_000 }, (_, nth) => String(nth)));
    expect(seen.filter(({ redelivered }) => redelivered)).toEqual([]);
    await first.leave();

    const leader = await cluster.leaderOf("DEVICES", "$MQTT_msgs");
    await leader.kill();
    const survivor = cluster.servers.findIndex((server) => server !== leader);
    let next = 1_000;
    await eventually(
      async () => {
        await using second = await publisherAt(survivor);
        await publish(second, next, 250);
        next += 250;
        return acknowledged.length >= 1_250;
      },
      { withinMs: 45_000, everyMs: 250 },
    );
    await eventually(() => {
      const numbers = new Set(seen.map(numberOf));
      return acknowledged.every((number) => numbers.has(number));
    });
    // What names a message for ever is the same whichever server tells it.
    expect(new Set(seen.map(({ streamCreated }) => streamCreated)).size).toBe(1);
    done.abort();
    await pulling;
  });
});
