import { describe, expect, test } from "@jest/globals";
import { noProperties } from "../src/packets/properties.ts";
import { MqttSession } from "../src/session/mqtt-session.ts";
import { deviceTopicsOf } from "../src/topics/device-topics.ts";
import {
  connect,
  connected,
  kinds,
  maxSessionExpiryMs,
  openConnection,
  sent,
  versions,
} from "./connection-fixture.ts";

describe("before the login", () => {
  test("another packet than CONNECT closes the connection", () => {
    const connection = openConnection();
    expect(connection.handle({ type: "pingreq" })).toMatchObject([{ do: "close", reason: "protocol" }]);
    expect(connection.handle(connect())).toEqual([]);
  });

  test("a connection without a CONNECT ends after 5 s", () => {
    const time = { nowMs: 0 };
    const connection = openConnection(time);
    time.nowMs = 4_999;
    expect(connection.tick()).toEqual([]);
    time.nowMs = 5_000;
    expect(connection.tick()).toEqual([{ do: "close", reason: "no_connect", detail: null }]);
  });

  test("nothing is read while the login is decided", () => {
    const connection = openConnection();
    expect(connection.isReading).toBe(true);
    expect(connection.handle(connect())).toMatchObject([{ do: "login", connect: { clientId: "pump-1" } }]);
    expect(connection.isReading).toBe(false);
    expect(connection.dueAtMs).toBe(Number.POSITIVE_INFINITY);
  });

  test("a version that is not spoken gets an answer", () => {
    const effects = openConnection().handle({ type: "fault", code: 0x84, detail: "version 9" });
    expect(sent(effects)).toMatchObject([{ type: "connack", reasonCode: 0x84 }]);
    expect(effects.at(-1)).toEqual({ do: "close", reason: "protocol", detail: "version 9" });
  });

  test("an authentication method is refused", () => {
    const properties = { authenticationMethod: "SCRAM" };
    expect(sent(openConnection().handle(connect({ properties })))).toMatchObject([{ reasonCode: 0x8c }]);
  });

  test("an empty client id needs a clean session in MQTT 3.1.1, and is refused in MQTT 3.1", () => {
    const answers = versions.map((version) =>
      [true, false].map(
        (clean) => kinds(openConnection().handle(connect({ version, clean, clientId: "" })))[0],
      ),
    );
    expect(answers).toEqual([
      ["send", "send"],
      ["login", "send"],
      ["login", "login"],
    ]);
  });
});

describe("a login", () => {
  test("that is admitted gets the bounds of the service", () => {
    expect(sent(connected().admitted)).toEqual([
      {
        type: "connack",
        sessionPresent: false,
        reasonCode: 0,
        properties: {
          receiveMaximum: 1_000,
          maximumPacketSize: 278_528,
          topicAliasMaximum: 16,
          sharedSubscriptionAvailable: 0,
        },
      },
    ]);
  });

  test("without a client id gets the assigned one", () => {
    const { admitted } = connected({ clientId: "" }, new MqttSession("pump-1:abc"));
    expect(sent(admitted)).toMatchObject([{ properties: { assignedClientIdentifier: "pump-1:abc" } }]);
  });

  test("that is refused gets the reason and is closed", () => {
    const connection = openConnection();
    connection.handle(connect());
    const effects = connection.refuse(0x86, "wrong password");
    expect(effects).toMatchObject([
      {
        do: "send",
        packet: { type: "connack", reasonCode: 0x86, properties: { reasonString: "wrong password" } },
      },
      { do: "close", reason: "login_refused" },
    ]);
    expect(
      connection.admit({
        deviceId: "x",
        topics: deviceTopicsOf("x"),
        session: new MqttSession("x"),
        isPresent: false,
      }),
    ).toEqual([]);
  });

  test("of a client that wants no reasons gets none", () => {
    const connection = openConnection();
    connection.handle(connect({ properties: { requestProblemInformation: 0 } }));
    expect(sent(connection.refuse(0x86, "wrong"))).toMatchObject([{ properties: noProperties }]);
  });

  test.each([
    [4, true, undefined, 0],
    [4, false, undefined, maxSessionExpiryMs],
    [5, true, undefined, 0],
    [5, false, 60, 60_000],
    [5, false, 4_000_000, maxSessionExpiryMs],
    [5, false, 0xffff_ffff, maxSessionExpiryMs],
  ] as const)("of version %i, clean %s, expiry %s keeps its session %i ms", (version, clean, expiry, ms) => {
    const properties = expiry === undefined ? {} : { sessionExpiryInterval: expiry };
    const { session, admitted } = connected({ version, clean, properties });
    expect(session.expiryMs).toBe(ms);
    const [connack] = sent(admitted);
    const capped = connack?.type === "connack" ? connack.properties.sessionExpiryInterval : null;
    expect(capped).toBe((expiry ?? 0) * 1_000 > maxSessionExpiryMs ? 3_600 : undefined);
  });
});

describe("keep-alive", () => {
  test("of 60 s ends a connection after 90 s without a packet", () => {
    const { connection, time, handle } = connected({ keepAlive: 60 });
    time.nowMs = 50_000;
    expect(sent(handle({ type: "pingreq" }))).toEqual([{ type: "pingresp" }]);
    time.nowMs = 139_999;
    expect(connection.tick()).toEqual([]);
    time.nowMs = 140_000;
    expect(connection.tick()).toMatchObject([
      { do: "send", packet: { type: "disconnect", reasonCode: 0x8d } },
      { do: "close", reason: "keep_alive" },
    ]);
  });

  test("of none is given by the server in MQTT 5 alone", () => {
    const five = connected({ keepAlive: 0 });
    expect(sent(five.admitted)).toMatchObject([{ properties: { serverKeepAlive: 3_600 } }]);
    expect(five.connection.dueAtMs).toBe(5_400_000);
    const four = connected({ version: 4, keepAlive: 0 });
    expect(four.connection.dueAtMs).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("a will", () => {
  const will = {
    topic: "pump-1/event/gone",
    payload: Buffer.from("1"),
    qos: 1,
    retain: false,
    properties: { willDelayInterval: 30, contentType: "t" },
  } as const;

  test("is published when the connection is lost", () => {
    const { connection } = connected({ will });
    expect(connection.lost("ECONNRESET")).toMatchObject([
      { do: "will", delayMs: 0, publication: { topic: will.topic, properties: { contentType: "t" } } },
      { do: "close", reason: "network", detail: "ECONNRESET" },
    ]);
  });

  test("waits for its delay, but not longer than its session", () => {
    const delays = [20, 60].map((sessionExpiryInterval) => {
      const [effect] = connected({ will, properties: { sessionExpiryInterval } }).connection.lost(null);
      return effect?.do === "will" ? effect.delayMs : null;
    });
    expect(delays).toEqual([20_000, 30_000]);
  });

  test("is dropped by a DISCONNECT, unless that asks for it", () => {
    const leave = (reasonCode: number) =>
      kinds(connected({ will }).handle({ type: "disconnect", reasonCode, properties: noProperties }));
    expect(leave(0)).toEqual(["close"]);
    expect(leave(4)).toEqual(["will", "close"]);
  });

  test("on a foreign topic refuses the login in MQTT 5, and is dropped in MQTT 3", () => {
    const foreign = { ...will, topic: "pump-2/event/gone" };
    expect(connected({ will: foreign }).admitted).toMatchObject([
      { do: "report", refusal: { name: "publication_refused", topic: foreign.topic } },
      { do: "send", packet: { reasonCode: 0x87 } },
      { do: "close", reason: "login_refused" },
    ]);
    const four = connected({ version: 4, will: foreign });
    expect(kinds(four.admitted)).toEqual(["report", "send"]);
    expect(kinds(four.connection.lost(null))).toEqual(["close"]);
  });
});

describe("the end", () => {
  test.each([
    ["taken_over", 0x8e],
    ["revoked", 0x87],
    ["server_stop", 0x8b],
  ] as const)("by the server for %s is said in MQTT 5", (reason, reasonCode) => {
    expect(connected().connection.end(reason)).toMatchObject([
      { do: "send", packet: { type: "disconnect", reasonCode } },
      { do: "close", reason },
    ]);
    expect(kinds(connected({ version: 4 }).connection.end(reason))).toEqual(["close"]);
  });

  test("may shorten or lengthen a session, but not keep one that ends with its connection", () => {
    const leave = (kept: number, seconds: number) => {
      const made = connected({ properties: { sessionExpiryInterval: kept } });
      const effects = made.handle({
        type: "disconnect",
        reasonCode: 0,
        properties: { sessionExpiryInterval: seconds },
      });
      return [made.session.expiryMs, effects.at(-1)];
    };
    expect(leave(60, 0)).toMatchObject([0, { reason: "client_closed" }]);
    expect(leave(60, 90)).toMatchObject([90_000, { reason: "client_closed" }]);
    expect(leave(0, 90)).toMatchObject([0, { reason: "protocol" }]);
  });

  test("comes once: later packets and ticks do nothing", () => {
    const { connection, handle } = connected();
    expect(kinds(handle(connect()))).toEqual(["send", "close"]);
    expect([
      handle({ type: "pingreq" }),
      connection.tick(),
      connection.lost(null),
      connection.end("slow"),
    ]).toEqual([[], [], [], []]);
  });
});
