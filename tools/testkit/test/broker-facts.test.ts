import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "../src/eventually.ts";
import { freePort } from "../src/free-port.ts";
import { connectMqttDevice, type MqttDevice } from "../src/mqtt-device.ts";
import { connectNats, type NatsTestConnection, type WireMessage } from "../src/nats-connection.ts";
import { startNatsServer, type TestNatsServer } from "../src/nats-server.ts";

/*
 * What the product relies on of nats-server, proven again on the very server that is used: a newer one that behaves
 * otherwise must fail here before it fails a user (ADR 1).
 */

/** One account of devices with plain users, so that nothing but the server itself is looked at. */
const config = `
accounts {
  DEVICES {
    jetstream: enabled
    users: [
      { user: app, password: app }
      { user: pump-1, password: t, permissions: {
          publish: { allow: ["pump-1.>", "db.pump-1.>"] }
          subscribe: { allow: ["pump-1", "pump-1.>"], deny: ["pump-1.rpc.>"] } } }
      { user: ab, password: t, permissions: {
          publish: { allow: ["ab.>", "db.ab.>"] }
          subscribe: { allow: ["ab.>"] } } }
      { user: db, password: t, permissions: { publish: ["db.>"], subscribe: ["db.>"] } }
    ]
  }
  SYS { users: [ { user: sys, password: sys } ] }
}
system_account: SYS
`;

let server: TestNatsServer;
let app: NatsTestConnection;
let sys: NatsTestConnection;
beforeAll(async () => {
  server = await startNatsServer({ mqtt: true, config });
  app = await connectNats({ port: server.port, user: "app", password: "app" });
  sys = await connectNats({ port: server.port, user: "sys", password: "sys" });
});
afterAll(async () => {
  await app.close();
  await sys.close();
  await server.stop();
});

/** With another client id: the broker closes one that comes again before its last connection has ended. */
let connections = 0;
const device = (id: string, clientId = `${id}-${++connections}`, clean = true): Promise<MqttDevice> =>
  connectMqttDevice({ url: server.mqttUrl, id, token: id === "app" ? "app" : "t", clientId }, { clean });

/** A PUBLISH at QoS 1 with packet identifier 4711 (MQTT 3.1.1, section 3.3). */
function publishPacket(topic: string, isDuplicate: boolean): Buffer {
  const name = Buffer.from(topic);
  const rest = Buffer.concat([
    Buffer.from([0, name.length]),
    name,
    Buffer.from([0x12, 0x67]),
    Buffer.from("1"),
  ]);
  return Buffer.concat([Buffer.from([isDuplicate ? 0x3a : 0x32, rest.length]), rest]);
}

/** What arrives on a subject from now on. */
async function recorded(connection: NatsTestConnection, subject: string): Promise<WireMessage[]> {
  const messages: WireMessage[] = [];
  await connection.subscribe(subject, (message) => messages.push(message));
  return messages;
}

/** The server has dealt with all that a device sent, and this connection has been given what came of it. */
async function settled(sender: MqttDevice): Promise<void> {
  await sender.publish(`${sender.id}/settled`, "", 1);
  await app.flush();
}

describe("topics and subjects", () => {
  test("a publish to a forbidden topic is acknowledged and dropped", async () => {
    await using pump = await device("pump-1");
    const seen = await recorded(app, "other.>");
    await pump.publish("other/x", "1", 1);
    await settled(pump);
    expect(seen).toEqual([]);
  });

  test("a device allowed X.> that subscribes X/# is refused unless X is allowed too", async () => {
    await using without = await device("ab");
    await using withBoth = await device("pump-1");
    expect(await without.subscribe("ab/#", 1)).toBe(128);
    expect(await withBoth.subscribe("pump-1/#", 1)).toBe(1);
  });

  test("where ID.rpc.> is denied, ID/rpc/# is refused, the device stays connected and a call on ID/rpc runs once", async () => {
    await using pump = await device("pump-1");
    await using caller = await device("app");
    expect(await pump.subscribe("pump-1/rpc")).toBe(0);
    expect(await pump.subscribe("pump-1/rpc/#")).toBe(128);
    await caller.publish("pump-1/rpc", "call", 1);
    await caller.publish("pump-1/end", "", 1);
    await pump.subscribe("pump-1/end");
    await caller.publish("pump-1/end", "", 0);
    await pump.awaitMessage("pump-1/end");
    expect(pump.messages.filter(({ topic }) => topic === "pump-1/rpc")).toHaveLength(1);
  });

  test("two overlapping subscriptions of one connection deliver a message twice", async () => {
    await using subscriber = await device("app", "app-overlap");
    await subscriber.subscribe("x/rpc");
    await subscriber.subscribe("x/rpc/#");
    app.publish("x.rpc", "call");
    app.publish("x.rpc.end", "");
    await subscriber.awaitMessage("x/rpc/end");
    expect(subscriber.messages.filter(({ topic }) => topic === "x/rpc")).toHaveLength(2);
  });

  test("subscriptions with wildcards in foreign topics are refused", async () => {
    await using pump = await device("pump-1");
    for (const topic of [
      "#",
      "+/x",
      "ab/x",
      "+/shadow/delta",
      "db/#",
      "db/+/temp",
      "$MQTT/sub/#",
      "$JS/#",
      "$SYS/#",
    ]) {
      expect([topic, await pump.subscribe(topic)]).toEqual([topic, 128]);
    }
  });

  test("the broker's own delivery subjects cannot be subscribed over MQTT, whatever the permissions", async () => {
    await using anybody = await device("app", "app-internal");
    expect(await anybody.subscribe("$MQTT/sub/#")).toBe(128);
    expect(await anybody.subscribe("$MQTT/sub/x", 1)).toBe(128);
  });

  test("a device named db, granted its own topics like any other, reads and forges what all devices publish", async () => {
    await using thief = await device("db");
    await using pump = await device("pump-1");
    expect(await thief.subscribe("db/#")).toBe(128);
    expect(await thief.subscribe("db/+/temp")).toBe(0);
    await pump.publish("db/pump-1/temp", "21", 1);
    await thief.awaitMessage("db/pump-1/temp");
    const seen = await recorded(app, "db.pump-1.>");
    await thief.publish("db/pump-1/temp", "99", 1);
    await eventually(() => seen.some(({ payload }) => payload === "99"));
  });

  test("a topic level that is a NATS wildcard arrives as a wildcard token", async () => {
    await using pump = await device("pump-1");
    const seen = await recorded(app, "pump-1.>");
    await pump.publish("pump-1/*/y", "1", 1);
    await eventually(() => seen.some(({ subject }) => subject === "pump-1.*.y"));
  });

  test("a dot in a topic level arrives as a double slash", async () => {
    await using pump = await device("pump-1");
    const seen = await recorded(app, "pump-1.>");
    await pump.publish("pump-1/a.b", "1", 1);
    await eventually(() => seen.some(({ subject }) => subject === "pump-1.a//b"));
  });

  test("a topic with a blank ends the connection", async () => {
    await using pump = await device("pump-1");
    const closed = pump.closed();
    pump.client.publish("pump-1/a b", "1");
    await closed;
  });

  test("two subscribers of a topic both get a message, and $share is granted and delivers nothing", async () => {
    await using one = await device("app", "app-one");
    await using two = await device("app", "app-two");
    await using shared = await device("app", "app-shared");
    await one.subscribe("both/x");
    await two.subscribe("both/x");
    expect(await shared.subscribe("$share/group/both/x")).toBe(0);
    app.publish("both.x", "1");
    await Promise.all([one.awaitMessage("both/x"), two.awaitMessage("both/x")]);
    await shared.subscribe("both/end");
    app.publish("both.end", "1");
    await shared.awaitMessage("both/end");
    expect(shared.messages.map(({ topic }) => topic)).toEqual(["both/end"]);
  });
});

describe("retained messages", () => {
  test("are delivered on each subscribe", async () => {
    await using publisher = await device("app", "app-retain");
    await publisher.publish("pump-1/shadow/delta", '{"state":{}}', 1, true);
    for (let connect = 0; connect < 2; connect++) {
      await using pump = await device("pump-1");
      await pump.subscribe("pump-1/shadow/delta", 1);
      expect(await pump.awaitMessage("pump-1/shadow/delta")).toMatchObject({
        retained: true,
        payload: '{"state":{}}',
      });
    }
  });

  test("are refused to another device", async () => {
    await using publisher = await device("app", "app-retain");
    await publisher.publish("pump-1/shadow/delta", "secret", 1, true);
    await using other = await device("ab");
    expect(await other.subscribe("pump-1/shadow/delta")).toBe(128);
  });

  test("are cleared by an empty payload, which is itself delivered", async () => {
    await using publisher = await device("app", "app-retain");
    await using pump = await device("pump-1");
    await publisher.publish("pump-1/shadow/old", "1", 1, true);
    await pump.subscribe("pump-1/shadow/old", 1);
    await pump.awaitMessage(({ payload }) => payload === "1");
    await publisher.publish("pump-1/shadow/old", "", 1, true);
    await pump.awaitMessage(({ payload }) => payload === "");
    await using later = await device("app", "app-later");
    await later.subscribe("pump-1/shadow/old", 1);
    await later.subscribe("pump-1/shadow/end");
    await publisher.publish("pump-1/shadow/end", "1", 1);
    await later.awaitMessage("pump-1/shadow/end");
    expect(later.messages).toHaveLength(1);
  });
});

describe("connections and sessions", () => {
  /** CONNECT and DISCONNECT of the account of devices, as the presence of a device is made of. */
  async function connectionEvents(): Promise<{ what: string; client: number; id: string }[]> {
    const events: { what: string; client: number; id: string }[] = [];
    await sys.subscribe("$SYS.ACCOUNT.DEVICES.>", ({ subject, payload }) => {
      const what = subject.split(".").at(-1) ?? "";
      if (what !== "CONNECT" && what !== "DISCONNECT") return;
      const { client } = JSON.parse(payload);
      events.push({ what, client: client.id, id: client.client_id ?? "" });
    });
    return events;
  }

  test("the same client id connects again: CONNECT of the new comes before DISCONNECT of the old", async () => {
    const events = await connectionEvents();
    await using first = await device("ab", "ab:takeover");
    const closed = first.closed();
    await using second = await device("ab", "ab:takeover");
    await closed;
    const ofBoth = await eventually(() => {
      const found = events.filter(({ id }) => id === "ab:takeover");
      return found.length >= 3 ? found : null;
    });
    expect(second.client.connected).toBe(true);
    expect(ofBoth.map(({ what }) => what)).toEqual(["CONNECT", "CONNECT", "DISCONNECT"]);
    expect(ofBoth[2]?.client).toBe(ofBoth[0]?.client);
  });

  test("the client id of another device takes over that device's session, whoever's token it is", async () => {
    await using pump = await device("pump-1", "pump-1");
    const closed = pump.closed();
    await using thief = await device("ab", "pump-1");
    await closed;
    expect(thief.client.connected).toBe(true);
  });

  test("KICK closes one client by its number, and leaves its session and what is queued for it", async () => {
    const events = await connectionEvents();
    const pump = await device("pump-1", "pump-1:kept", false);
    await pump.subscribe("pump-1/queued", 1);
    const connected = await eventually(() =>
      events.find(({ what, id }) => what === "CONNECT" && id === "pump-1:kept"),
    );
    const { server: info } = JSON.parse((await sys.request("$SYS.REQ.SERVER.PING.CONNZ", "{}")).payload);
    const closed = pump.closed();
    await sys.request(`$SYS.REQ.SERVER.${info.id}.KICK`, JSON.stringify({ cid: connected.client }));
    await closed;
    await using publisher = await device("app", "app-queue");
    await publisher.publish("pump-1/queued", "waiting", 1);
    await using again = await device("pump-1", "pump-1:kept", false);
    expect(await again.awaitMessage("pump-1/queued")).toMatchObject({ payload: "waiting" });
    await again.leave();
    await using cleaned = await device("pump-1", "pump-1:kept");
    expect(cleaned.client.connected).toBe(true);
  });

  test("CONNZ lists a device's connection with its client id and user", async () => {
    await using pump = await device("pump-1", "pump-1:shell");
    const query = JSON.stringify({ acc: "DEVICES", auth: true });
    const { data } = JSON.parse((await sys.request("$SYS.REQ.SERVER.PING.CONNZ", query)).payload);
    expect(data.connections).toContainEqual(
      expect.objectContaining({ mqtt_client: "pump-1:shell", authorized_user: pump.id }),
    );
  });
});

describe("a cluster", () => {
  test("tells DISCONNECT of a connection to another server, and nothing of those of a server that was killed", async () => {
    const routes = [await freePort(), await freePort()];
    const member = (at: number) =>
      startNatsServer({
        config: ({ port, mqttPort, storeDir }) => `
          server_name: "member-${at}"
          listen: "127.0.0.1:${port}"
          jetstream { store_dir: ${JSON.stringify(storeDir)} }
          mqtt { listen: "127.0.0.1:${mqttPort}" }
          cluster { name: facts, listen: "127.0.0.1:${routes[at]}", routes: [${routes.map((port) => `"nats://127.0.0.1:${port}"`)}] }
          ${config}`,
      });
    const [near, far] = await Promise.all([member(0), member(1)]);
    await using _near = near;
    await using _far = far;
    await using watcher = await connectNats({ port: near.port, user: "sys", password: "sys" });
    const told = await recorded(watcher, "$SYS.ACCOUNT.DEVICES.*");
    const countOf = (what: string) =>
      told.filter(({ subject, payload }) => subject.endsWith(`.${what}`) && payload.includes('"mqtt"'))
        .length;
    const connect = (clientId: string) =>
      connectMqttDevice({ url: far.mqttUrl, id: "pump-1", token: "t", clientId });
    const leaver = await eventually(() => connect("pump-1:leaver"), { everyMs: 250 });
    await using stayer = await connect("pump-1:stayer");
    await eventually(() => countOf("CONNECT") >= 2);
    const before = countOf("DISCONNECT");
    await leaver.leave();
    await eventually(() => countOf("DISCONNECT") === before + 1);
    const closed = stayer.closed();
    await far.kill();
    await closed;
    const routesLeft = async () =>
      JSON.parse((await watcher.request("$SYS.REQ.SERVER.PING.VARZ", "{}")).payload).data.routes;
    await eventually(async () => (await routesLeft()) === 0);
    await watcher.flush();
    expect(countOf("DISCONNECT")).toBe(before + 1);
  });
});

describe("what was acknowledged", () => {
  const durable = "facts";
  const filter = "$MQTT.msgs.db.>";
  const stream = "$MQTT_msgs";

  async function streamState(connection: NatsTestConnection): Promise<number> {
    const { state } = (await connection.requestJson(`$JS.API.STREAM.INFO.${stream}`)) as {
      state: { messages: number };
    };
    return state.messages;
  }

  function makeConsumer(connection: NatsTestConnection) {
    const config = {
      durable_name: durable,
      ack_policy: "explicit",
      filter_subject: filter,
      deliver_policy: "all",
    };
    return connection.requestJson(`$JS.API.CONSUMER.DURABLE.CREATE.${stream}.${durable}`, {
      stream_name: stream,
      config,
    });
  }

  test("stands in $MQTT_msgs, which the first login makes and which keeps what a consumer is interested in", async () => {
    await using pump = await device("pump-1");
    const info = (await app.requestJson(`$JS.API.STREAM.INFO.${stream}`)) as {
      config: Record<string, unknown>;
    };
    expect(info.config).toMatchObject({ retention: "interest", subjects: ["$MQTT.msgs.>"] });
    await makeConsumer(app);
    const before = await streamState(app);
    await pump.publish("db/pump-1/temp", "21", 1);
    await pump.publish("db/pump-1/temp", "22", 2);
    await eventually(async () => (await streamState(app)) === before + 2);
  });

  test("and is sent again with DUP, as its acknowledgement was lost, stands there twice with nothing that tells", async () => {
    await using pump = await device("pump-1");
    await makeConsumer(app);
    const before = await streamState(app);
    const seen = await recorded(app, "db.pump-1.dup");
    for (const isDuplicate of [false, true])
      pump.client.stream.write(publishPacket("db/pump-1/dup", isDuplicate));
    await eventually(async () => (await streamState(app)) === before + 2);
    expect(seen.map(({ headers }) => headers)).toEqual([{ "Nmqtt-Pub": "1" }, { "Nmqtt-Pub": "1" }]);
  });

  test("at QoS 0 does not stand there, and its core message says so in a header", async () => {
    await using pump = await device("pump-1");
    await makeConsumer(app);
    const seen = await recorded(app, "db.>");
    const before = await streamState(app);
    await pump.publish("db/pump-1/zero", "0", 0);
    await pump.publish("db/pump-1/one", "1", 1);
    await eventually(() => seen.length === 2);
    expect(seen.map(({ headers }) => headers["Nmqtt-Pub"])).toEqual(["0", "1"]);
    expect(await streamState(app)).toBe(before + 1);
  });

  test("survives kill -9 of the server, and so do the consumer and the stream's limits", async () => {
    await using own = await startNatsServer({ mqtt: true, config });
    await using pump = await connectMqttDevice({ url: own.mqttUrl, id: "pump-1", token: "t" });
    await using before = await connectNats({ port: own.port, user: "app", password: "app" });
    await makeConsumer(before);
    const { config: streamConfig } = (await before.requestJson(`$JS.API.STREAM.INFO.${stream}`)) as {
      config: object;
    };
    const limits = { max_bytes: 50_000_000, discard: "new" };
    await before.requestJson(`$JS.API.STREAM.UPDATE.${stream}`, { ...streamConfig, ...limits });
    let acknowledged = 0;
    for (let number = 0; number < 2_000; number++) {
      pump.client.publish("db/pump-1/n", String(number), { qos: 1 }, (error) => {
        if (!error && ++acknowledged === 500) void own.kill();
      });
    }
    await eventually(() => acknowledged >= 500 && !pump.client.connected);
    pump.vanish();
    await own.restart();
    await using after = await connectNats({ port: own.port, user: "app", password: "app" });
    const kept = await eventually(() => streamState(after));
    expect(kept).toBeGreaterThanOrEqual(acknowledged);
    const info = (await after.requestJson(`$JS.API.STREAM.INFO.${stream}`)) as { config: object };
    expect(info.config).toMatchObject(limits);
    expect(await after.requestJson(`$JS.API.CONSUMER.INFO.${stream}.${durable}`)).toMatchObject({
      num_pending: kept,
    });
  });

  test("is not acknowledged when the stream is full and discards new: the connection is closed", async () => {
    await using own = await startNatsServer({ mqtt: true, config });
    await using pump = await connectMqttDevice({ url: own.mqttUrl, id: "pump-1", token: "t" });
    await using admin = await connectNats({ port: own.port, user: "app", password: "app" });
    await makeConsumer(admin);
    const { config: streamConfig } = (await admin.requestJson(`$JS.API.STREAM.INFO.${stream}`)) as {
      config: object;
    };
    const limits = { max_msgs: 10, discard: "new" };
    await admin.requestJson(`$JS.API.STREAM.UPDATE.${stream}`, { ...streamConfig, ...limits });
    const closed = pump.closed();
    for (let number = 0; number < 10; number++) await pump.publish("db/pump-1/n", String(number), 1);
    let acknowledged = false;
    pump.client.publish("db/pump-1/n", "one too many", { qos: 1 }, (error) => {
      acknowledged = !error;
    });
    await closed;
    expect(acknowledged).toBe(false);
    expect(await streamState(admin)).toBe(10);
  });

  test("is fetched by subject, sequence and payload through a pull consumer, and removed once acknowledged", async () => {
    await using own = await startNatsServer({ mqtt: true, config });
    await using pump = await connectMqttDevice({ url: own.mqttUrl, id: "pump-1", token: "t" });
    await using reader = await connectNats({ port: own.port, user: "app", password: "app" });
    await makeConsumer(reader);
    await pump.publish("db/pump-1/temp", "21", 1);
    const message = await reader.request(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, '{"batch":1}');
    expect(message).toMatchObject({ subject: "$MQTT.msgs.db.pump-1.temp", payload: "21" });
    expect(message.reply).toMatch(/^\$JS\.ACK\./);
    reader.publish(message.reply ?? "", "+ACK");
    await eventually(async () => (await streamState(reader)) === 0);
  });
});

describe("the server's limits", () => {
  test("without default_max_consumers -1 a stream takes 1,000 consumers; each QoS 1 subscription is one", async () => {
    await using own = await startNatsServer({
      config: ({ port, mqttPort, storeDir }) => `
        server_name: limits
        listen: "127.0.0.1:${port}"
        jetstream { store_dir: ${JSON.stringify(storeDir)}, limits { default_max_consumers: 3 } }
        mqtt { listen: "127.0.0.1:${mqttPort}", consumer_memory_storage: true }
        ${config}`,
    });
    const devices: MqttDevice[] = [];
    const granted: number[] = [];
    for (let number = 0; number < 5; number++) {
      const subscriber = await connectMqttDevice({
        url: own.mqttUrl,
        id: "app",
        token: "app",
        clientId: `app-${number}`,
      });
      devices.push(subscriber);
      granted.push(await subscriber.subscribe(`limit/${number}`, 1));
    }
    for (const subscriber of devices) await subscriber.leave();
    expect(granted.filter((code) => code === 1)).toHaveLength(3);
    expect(granted.filter((code) => code === 128)).toHaveLength(2);
  });
});
