import { describe, expect, test } from "@jest/globals";
import { MqttSession } from "../src/session/mqtt-session.ts";
import { connected, kinds, message, sent, step, subscribe, subscribed } from "./connection-fixture.ts";

const topic = "pump-1/rpc";

describe("a subscription", () => {
  test("is granted, and its retained messages are asked for", () => {
    expect(connected().handle(subscribe("pump-1/#", 1))).toMatchObject([
      { do: "send", packet: { type: "suback", packetId: 9, reasonCodes: [1] } },
      { do: "send_retained", subscriptions: [{ filter: "pump-1/#", isNew: true }] },
    ]);
  });

  test.each([
    ["pump-2/#", 0x87, "topic"],
    ["pump-1/a#", 0x8f, "filter"],
    ["$share/g/pump-1/x", 0x9e, "shared"],
  ])("of %s is refused with %i and reported", (filter, code, reason) => {
    for (const version of [4, 5] as const)
      expect(connected({ version }).handle(subscribe(filter))).toMatchObject([
        { do: "report", refusal: { name: "subscription_refused", reason, topic: filter } },
        { do: "send", packet: { reasonCodes: [code] } },
      ]);
  });

  test("of ID/rpc/# is refused and not reported", () => {
    expect(connected().handle(subscribe("pump-1/rpc/#"))).toMatchObject([
      {
        do: "send",
        packet: {
          reasonCodes: [0x87],
          properties: { reasonString: expect.stringContaining("subscribe below") },
        },
      },
    ]);
  });

  test("beyond 1,000 is refused", () => {
    const { handle, session } = connected();
    for (let at = 0; at < 1_000; at++) handle(subscribe(`pump-1/${at}`));
    expect(sent(handle(subscribe("pump-1/x")))).toMatchObject([{ reasonCodes: [0x97] }]);
    expect(sent(handle(subscribe("pump-1/7", 1)))).toMatchObject([{ reasonCodes: [1] }]);
    expect(session.subscriptions.size).toBe(1_000);
  });

  test.each([
    [0, [true, true]],
    [1, [true, false]],
    [2, [false, false]],
  ])(
    "with the retain handling %i sends retained messages: first and again %j",
    (retainHandling, expected) => {
      const { handle } = connected();
      const again = [1, 2].map(() =>
        kinds(handle(subscribe("pump-1/x", 0, { retainHandling }))).includes("send_retained"),
      );
      expect(again).toEqual(expected);
    },
  );

  test("of a shared filter without local messages breaks the protocol", () => {
    expect(sent(connected().handle(subscribe("$share/g/a", 0, { noLocal: true })))).toMatchObject([
      { type: "disconnect", reasonCode: 0x82 },
    ]);
  });

  test("ends by UNSUBSCRIBE", () => {
    const { connection, handle } = subscribed("pump-1/#", 0);
    expect(
      sent(handle({ type: "unsubscribe", packetId: 3, filters: ["pump-1/#", "pump-1/x"], properties: {} })),
    ).toMatchObject([{ type: "unsuback", packetId: 3, reasonCodes: [0, 0x11] }]);
    expect(connection.deliver(message(topic))).toEqual({ isMatched: false, effects: [] });
  });

  test("of a kept session is saved before it is answered", () => {
    expect(
      kinds(connected({ version: 4, clean: false }).handle(subscribe("pump-1/x", 0, { retainHandling: 2 }))),
    ).toEqual(["save", "send"]);
  });
});

describe("a message for a device", () => {
  test("is delivered once at the highest of the subscriptions that match, or at its own QoS if that is lower", () => {
    const { connection, handle } = subscribed("pump-1/#", 0);
    handle(subscribe("pump-1/rpc", 1));
    const deliveries = ([0, 1, 2] as const).map((qos) =>
      sent(connection.deliver(message(topic, { qos })).effects),
    );
    expect(deliveries).toMatchObject([[{ qos: 0 }], [{ qos: 1 }], [{ qos: 1 }]]);
  });

  test("that no subscription selects is answered as such", () => {
    expect(connected().connection.deliver(message(topic))).toEqual({ isMatched: false, effects: [] });
  });

  test("has the identifiers of all subscriptions that match", () => {
    const { connection, handle } = connected();
    for (const [filter, id] of [
      ["pump-1/#", 7],
      ["pump-1/rpc", 300],
      ["pump-1/x", 9],
    ] as const)
      handle({ ...subscribe(filter), properties: { subscriptionIdentifiers: [id] } } as never);
    expect(sent(connection.deliver(message(topic)).effects)).toMatchObject([
      { properties: { subscriptionIdentifiers: [7, 300] } },
    ]);
  });

  test("that the client itself published is left out by no local", () => {
    const { connection, handle } = connected();
    handle(subscribe("pump-1/#", 0, { noLocal: true }));
    const matched = ["pump-1", "pump-1:b"].map(
      (publisher) => connection.deliver(message(topic, { publisher })).isMatched,
    );
    expect(matched).toEqual([false, true]);
  });

  test.each([true, false])("keeps its retain flag with retain as published: %s", (retainAsPublished) => {
    const { connection, handle } = connected();
    handle(subscribe("pump-1/#", 0, { retainAsPublished }));
    expect(sent(connection.deliver(message(topic, { retain: true })).effects)).toMatchObject([
      { retain: retainAsPublished },
    ]);
    expect(sent(connection.deliverRetained("pump-1/#", message(topic)))).toMatchObject([{ retain: true }]);
  });

  test("is dropped when it has expired, and otherwise has the seconds that are left", () => {
    const { connection, time } = subscribed("pump-1/#", 0);
    time.nowMs = 10_000;
    const kindsOf = [9_999, 12_500].map(
      (expiresAtMs) => connection.deliver(message(topic, { expiresAtMs })).effects,
    );
    expect(kindsOf).toMatchObject([
      [{ do: "count_dropped", why: "expired" }],
      [{ do: "send", packet: { properties: { messageExpiryInterval: 3 } } }],
    ]);
  });

  test("that is larger than the client takes is dropped", () => {
    const { connection } = subscribed("pump-1/#", 1, { properties: { maximumPacketSize: 100 } });
    const sizes = [60, 100].map((size) =>
      kinds(connection.deliver(message(topic, { qos: 1, payload: Buffer.alloc(size) })).effects),
    );
    expect(sizes).toEqual([["send"], ["count_dropped"]]);
    expect(connection.session?.outgoing.inFlight).toBe(1);
  });

  test("uses aliases up to the client's maximum", () => {
    const { connection } = subscribed("pump-1/#", 0, { properties: { topicAliasMaximum: 1 } });
    const packets = ["a", "b", "a"].map(
      (name) => sent(connection.deliver(message(`pump-1/${name}`)).effects)[0],
    );
    expect(packets).toMatchObject([
      { topic: "pump-1/a", properties: { topicAlias: 1 } },
      { topic: "pump-1/b", properties: {} },
      { topic: "", properties: { topicAlias: 1 } },
    ]);
  });
});

describe("what a client has not acknowledged", () => {
  test("is at most its receive maximum, and the rest waits in order", () => {
    const { connection, handle } = subscribed("pump-1/#", 1, { properties: { receiveMaximum: 2 } });
    const effects = ["1", "2", "3"].flatMap(
      (text) => connection.deliver(message(topic, { qos: 1, payload: Buffer.from(text) })).effects,
    );
    expect(sent(effects)).toMatchObject([{ packetId: 1 }, { packetId: 2 }]);
    expect(sent(handle(step("puback", 2)))).toMatchObject([{ packetId: 3, payload: Buffer.from("3") }]);
  });

  test("is at most 100 messages in MQTT 3", () => {
    const { connection } = subscribed("pump-1/#", 1, { version: 4 });
    for (let at = 0; at < 150; at++) connection.deliver(message(topic, { qos: 1 }));
    expect(connection.session?.outgoing).toMatchObject({ inFlight: 100, waiting: 50 });
  });

  test("and waits beyond 1 MB closes the connection as slow", () => {
    const { connection } = subscribed("pump-1/#", 1);
    const large = message(topic, { qos: 1, payload: Buffer.alloc(200_000) });
    const closed = Array.from({ length: 20 }, () => connection.deliver(large).effects).flat();
    expect(closed.at(-1)).toMatchObject({ do: "close", reason: "slow" });
    expect(connection.session?.outgoing.bytes).toBeLessThan(2_500_000);
  });

  test("at QoS 2 is released by PUBREL and ends with PUBCOMP", () => {
    const { connection, handle, session } = subscribed("pump-1/#", 2);
    connection.deliver(message(topic, { qos: 2 }));
    expect(sent(handle(step("pubrec", 1)))).toEqual([step("pubrel", 1)]);
    expect(session.outgoing.inFlight).toBe(1);
    expect(handle(step("pubcomp", 1))).toEqual([]);
    expect(session.outgoing.inFlight).toBe(0);
  });

  test("is not ended by the acknowledgement of another QoS or packet id", () => {
    const { connection, handle, session } = subscribed("pump-1/#", 2);
    connection.deliver(message(topic, { qos: 2 }));
    connection.deliver(message(topic, { qos: 1 }));
    handle(step("puback", 1), step("pubcomp", 1), step("pubcomp", 2), step("puback", 7));
    expect(session.outgoing.inFlight).toBe(2);
    expect(sent(handle(step("pubrec", 2)))).toMatchObject([{ type: "pubrel", reasonCode: 0x92 }]);
  });

  test("is given up when the client refuses it", () => {
    const { connection, handle, session } = subscribed("pump-1/#", 2);
    connection.deliver(message(topic, { qos: 2 }));
    expect(handle(step("pubrec", 1, 0x97))).toEqual([]);
    expect(session.outgoing.inFlight).toBe(0);
  });

  test("comes again on the next connection, in order, under its packet ids", () => {
    const session = new MqttSession("pump-1");
    const first = subscribed("pump-1/#", 2, { version: 4, clean: false }, session);
    for (const qos of [1, 2, 2, 1] as const) first.connection.deliver(message(topic, { qos }));
    first.handle(step("pubrec", 2));
    first.connection.lost(null);
    const second = connected({ version: 4, clean: false }, session);
    expect(sent(second.admitted).slice(1)).toMatchObject([
      { type: "publish", packetId: 1, dup: true, qos: 1 },
      { type: "pubrel", packetId: 2 },
      { type: "publish", packetId: 3, dup: true, qos: 2 },
      { type: "publish", packetId: 4, dup: true, qos: 1 },
    ]);
  });

  test("comes again in the window of a client that now takes less", () => {
    const session = new MqttSession("pump-1");
    const first = subscribed("pump-1/#", 1, { version: 4, clean: false }, session);
    for (let at = 0; at < 3; at++) first.connection.deliver(message(topic, { qos: 1 }));
    first.connection.lost(null);
    const second = connected({ properties: { receiveMaximum: 1 } }, session);
    expect(sent(second.admitted).slice(1)).toMatchObject([{ packetId: 1 }]);
    // The client cannot acknowledge what was not sent again.
    expect(second.handle(step("puback", 3))).toEqual([]);
    expect(sent(second.handle(step("puback", 1)))).toMatchObject([{ packetId: 2 }]);
  });
});
