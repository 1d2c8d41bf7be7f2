import { once } from "node:events";
import { connect } from "node:net";
import { Duplex } from "node:stream";
import { connect as tlsConnect } from "node:tls";
import { sendToDevice } from "@devmesh/device-broker/device-front";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { eventually } from "@devmesh/testkit/eventually";
import { testCertificate } from "@devmesh/testkit/test-certificate";
import { describe, expect, test } from "@jest/globals";
import { connectAsync, connect as connectMqtt, type IPublishPacket, type MqttClient } from "mqtt";
import { password, startFront } from "./front-fixture.ts";

/** Deliveries to a client, in order, with its packets. */
function received(
  client: MqttClient,
): { readonly topic: string; readonly text: string; readonly packet: IPublishPacket }[] {
  const messages: { topic: string; text: string; packet: IPublishPacket }[] = [];
  client.on("message", (topic, payload, packet) =>
    messages.push({ topic, text: payload.toString(), packet }),
  );
  return messages;
}

describe.each([4, 5] as const)("a client of MQTT version %i", (protocolVersion) => {
  test("has its messages stored before they are acknowledged, with topics as they are", async () => {
    await using front = await startFront();
    const client = await front.connect("pump-1", { protocolVersion });
    await client.publishAsync("db/pump-1/a b/c.d/*/>", "one", { qos: 1 });
    await client.publishAsync("db/pump-1/t", "two", { qos: 2 });
    await client.publishAsync("pump-1/event/x", "3", { qos: 1 });
    expect(await front.stored("records")).toMatchObject([
      { deviceId: "pump-1", topic: "db/pump-1/a b/c.d/*/>", text: "one", qos: 1 },
      { deviceId: "pump-1", topic: "db/pump-1/t", text: "two", qos: 2 },
    ]);
    expect(await front.stored("events")).toMatchObject([{ topic: "pump-1/event/x", text: "3" }]);
  });

  test("sends many messages in few batches and in order", async () => {
    await using front = await startFront();
    const client = await front.connect("pump-1", { protocolVersion });
    const sent = Array.from({ length: 3_000 }, (_, at) =>
      client.publishAsync("db/pump-1/t", String(at), { qos: 1 }),
    );
    await Promise.all(sent);
    const stored = await front.stored("records");
    expect(stored.map(({ text }) => text)).toEqual(Array.from({ length: 3_000 }, (_, at) => String(at)));
    expect(stored.at(-1)?.batch).toBeLessThan(1_000);
  });

  test("gets messages of the mesh, whose sender learns what became of them", async () => {
    await using front = await startFront();
    const call = { topic: "pump-1/rpc", qos: 0 as const, payload: Buffer.from("{}") };
    expect(await sendToDevice(front.bus, "pump-1", call)).toBe("not_connected");
    const client = await front.connect("pump-1", { protocolVersion });
    const messages = received(client);
    expect(await sendToDevice(front.bus, "pump-1", call)).toBe("not_subscribed");
    await client.subscribeAsync("pump-1/#", { qos: 1 });
    expect(await sendToDevice(front.bus, "pump-1", call)).toBe("delivered");
    expect(await sendToDevice(front.bus, "pump-1", { ...call, qos: 1 })).toBe("delivered");
    await eventually(() => messages.length === 2);
    expect(messages).toMatchObject([
      { topic: "pump-1/rpc", text: "{}", packet: { qos: 0 } },
      { topic: "pump-1/rpc", packet: { qos: 1 } },
    ]);
    await client.endAsync();
    await eventually(async () => (await sendToDevice(front.bus, "pump-1", call)) === "not_connected");
    expect(front.ends).toEqual(["pump-1 client_closed"]);
  });

  test("with a wrong password is refused", async () => {
    await using front = await startFront();
    const attempt = front.connect("pump-1", { protocolVersion, password: "wrong" });
    await expect(attempt).rejects.toMatchObject({ code: protocolVersion === 5 ? 0x86 : 4 });
    expect(front.front.connections).toBe(0);
  });

  test("is taken over by a later login of its client id", async () => {
    await using front = await startFront();
    const first = await front.connect("pump-1", { protocolVersion });
    const closed = new Promise((resolve) => first.once("close", () => resolve("closed")));
    await front.connect("pump-1", { protocolVersion });
    expect(await closed).toBe("closed");
    expect(front.ends).toEqual(["pump-1 taken_over"]);
    expect(front.front.connections).toBe(1);
  });

  test("finds its kept session again, with what it has not acknowledged", async () => {
    await using front = await startFront();
    const kept = { protocolVersion, clean: false, properties: { sessionExpiryInterval: 60 } };
    const first = await front.connect("pump-1", kept);
    await first.subscribeAsync("pump-1/#", { qos: 1 });
    first.handleMessage = () => {};
    await sendToDevice(front.bus, "pump-1", { topic: "pump-1/x", qos: 1, payload: Buffer.from("again") });
    first.end(true);
    await eventually(() => front.front.connections === 0);
    // What was kept comes right after the CONNACK.
    const second = connectMqtt(`mqtt://127.0.0.1:${front.listeners.port}`, {
      ...{ clientId: "pump-1", username: "pump-1", password, reconnectPeriod: 0 },
      ...kept,
    });
    const messages = received(second);
    await eventually(() => messages.length === 1);
    expect(messages).toMatchObject([{ text: "again", packet: { dup: true } }]);
    await second.endAsync(true);
  });
});

test("a client of MQTT 5 learns why it was refused", async () => {
  await using front = await startFront();
  const client = await front.connect("pump-1", { protocolVersion: 5 });
  await expect(client.publishAsync("db/pump-2/t", "x", { qos: 1 })).rejects.toMatchObject({ code: 0x87 });
  await expect(client.subscribeAsync("$share/g/pump-1/x")).rejects.toThrow();
  expect(front.refusals).toEqual([
    "publication_refused topic db/pump-2/t",
    "subscription_refused shared $share/g/pump-1/x",
  ]);
});

test("connections of a device get what the others publish, with its properties", async () => {
  await using front = await startFront();
  const one = await front.connect("pump-1", { protocolVersion: 5 });
  const other = await front.connect("pump-1", { protocolVersion: 5, clientId: "pump-1:b" });
  const messages = received(other);
  await other.subscribeAsync("pump-1/#", { qos: 1 });
  const properties = { contentType: "t", userProperties: { a: "1" } };
  await one.publishAsync("pump-1/event/x", "1", { qos: 1, properties });
  await eventually(() => messages.length === 1);
  expect(messages).toMatchObject([{ topic: "pump-1/event/x", packet: { properties } }]);
});

test("the will of a client that disappears is stored", async () => {
  await using front = await startFront();
  const will = { topic: "pump-1/event/gone", payload: Buffer.from("1"), qos: 1 as const, retain: false };
  const client = await front.connect("pump-1", { will });
  client.stream.destroy();
  await eventually(async () => (await front.stored("events")).length === 1);
  expect(await front.stored("events")).toMatchObject([{ topic: will.topic, will: true }]);
});

test("messages at QoS 0 are not stored", async () => {
  await using front = await startFront();
  const client = await front.connect("pump-1");
  await client.publishAsync("db/pump-1/t", "0");
  await client.publishAsync("db/pump-1/t", "1", { qos: 1 });
  expect((await front.stored("records")).map(({ text }) => text)).toEqual(["1"]);
});

test("nothing acknowledged is lost or out of order when nats-server is killed", async () => {
  await using front = await startFront();
  const client = await front.connect("pump-1");
  const acknowledged: number[] = [];
  const sending = Array.from({ length: 2_000 }, async (_, at) => {
    await client.publishAsync("db/pump-1/t", String(at), { qos: 1 });
    acknowledged.push(at);
  });
  await eventually(() => acknowledged.length > 0);
  await front.nats.kill();
  await front.nats.restart();
  await Promise.all(sending);
  const stored = (await front.stored("records")).map(({ text }) => Number(text));
  expect(stored).toEqual(Array.from({ length: 2_000 }, (_, at) => at));
});

test("a device that sends more than its rate is not read for a while, and loses nothing", async () => {
  await using front = await startFront({ messagesPerSecond: 200 });
  const client = await front.connect("pump-1");
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: 2_200 }, (_, at) => client.publishAsync("db/pump-1/t", String(at), { qos: 1 })),
  );
  expect(performance.now() - startedMs).toBeGreaterThan(900);
  expect(await front.stored("records")).toHaveLength(2_200);
});

describe("a listener", () => {
  test("serves TLS and WebSockets, and says why a connection failed", async () => {
    const { key, cert } = testCertificate;
    await using front = await startFront({ tls: { port: 0, key, cert }, webSocketPort: 0 });
    const login = { clientId: "pump-1", username: "pump-1", password, reconnectPeriod: 0 };
    for (const url of [
      `mqtts://127.0.0.1:${front.listeners.tlsPort}`,
      `ws://127.0.0.1:${front.listeners.webSocketPort}/mqtt`,
    ]) {
      const client = await connectAsync(url, { ...login, rejectUnauthorized: false });
      await client.publishAsync("db/pump-1/t", url, { qos: 1 });
      await client.endAsync();
    }
    expect(await front.stored("records")).toHaveLength(2);
    const plain = connect(front.listeners.tlsPort ?? 0, "127.0.0.1");
    plain.write("\x10\x00 not TLS at all, but some bytes");
    await eventually(() => front.ends.some((end) => end.startsWith("127.0.0.1 tls ")));
    plain.destroy();
  });

  test("takes the client's address from a proxy, also with TLS in the same piece", async () => {
    const addresses: string[] = [];
    await using front = await startFront({
      isProxy: () => true,
      tls: { port: 0, ...testCertificate },
      decide: async ({ userName, address }) => {
        addresses.push(address);
        return { deviceId: userName };
      },
    });
    const header = (last: number) => Buffer.from(`PROXY TCP4 192.0.2.${last} 192.0.2.1 4711 1883\r\n`);
    const plain = withHeader(front.listeners.port, header(7));
    const secure = tlsConnect({
      socket: withHeader(front.listeners.tlsPort ?? 0, header(8)),
      rejectUnauthorized: false,
    });
    for (const socket of [plain, secure]) {
      socket.write(connectPacket("pump-1", password, "pump-1"));
      const [connack] = await once(socket, "data");
      expect(connack).toEqual(Buffer.from([0x20, 2, 0, 0]));
      socket.destroy();
    }
    expect(addresses).toEqual(["192.0.2.7", "192.0.2.8"]);
  });

  test("closes the oldest of 200 connections of an address that send no CONNECT", async () => {
    await using front = await startFront();
    const open = () => connect(front.listeners.port, "127.0.0.1");
    const oldest = open();
    const closed = once(oldest, "close");
    await once(oldest, "connect");
    const others = Array.from({ length: 200 }, open);
    await closed;
    expect(front.ends).toEqual(["network too many connections without a CONNECT"]);
    const client = await front.connect("pump-1");
    expect(client.connected).toBe(true);
    for (const socket of others) socket.destroy();
  });

  test("names what was wrong with the bytes of a stranger", async () => {
    await using front = await startFront();
    const socket = connect(front.listeners.port, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\n\r\n");
    await once(socket.resume(), "close");
    expect(front.ends).toEqual(["protocol the first packet is no CONNECT"]);
  });
});

/** A connection whose first piece begins with a header. */
function withHeader(port: number, header: Buffer): Duplex {
  const socket = connect(port, "127.0.0.1");
  let before = header;
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      socket.write(Buffer.concat([before, chunk]), done);
      before = Buffer.alloc(0);
    },
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on("data", (piece) => stream.push(piece));
  socket.on("error", () => stream.destroy());
  return stream;
}
