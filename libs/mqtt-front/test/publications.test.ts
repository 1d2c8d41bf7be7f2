import { describe, expect, test } from "@jest/globals";
import type { Publication } from "../src/session/effect.ts";
import { MqttSession } from "../src/session/mqtt-session.ts";
import { connected, kinds, publish, published, sent, step } from "./connection-fixture.ts";

const topic = "db/pump-1/temp";

/** The one message that a packet publishes. */
function only(publications: readonly Publication[]): Publication {
  const [publication] = publications;
  if (publication === undefined) throw new Error("nothing was published");
  return publication;
}

describe("a message of a device", () => {
  test("at QoS 0 is published, without an answer", () => {
    const effects = connected().handle(publish(topic, { retain: true }));
    expect(effects).toMatchObject([
      {
        do: "publish",
        publication: { topic, qos: 0, retain: true, destination: { to: "batch", kind: "records" } },
      },
    ]);
  });

  test("at QoS 1 is acknowledged once it is stored", () => {
    const { connection, handle } = connected();
    const effects = handle(publish(topic, { qos: 1, packetId: 5 }));
    expect(kinds(effects)).toEqual(["publish"]);
    expect(sent(connection.stored(only(published(effects))))).toEqual([step("puback", 5)]);
  });

  test("at QoS 1 is published again when it comes again", () => {
    const { handle } = connected();
    const packet = publish(topic, { qos: 1, packetId: 5 });
    expect(published(handle(packet, { ...packet, dup: true }))).toHaveLength(2);
  });

  test("at QoS 2 is published once, whatever comes again before its release", () => {
    const { connection, handle } = connected();
    const packet = publish(topic, { qos: 2, packetId: 5 });
    const effects = handle(packet, { ...packet, dup: true });
    expect(kinds(effects)).toEqual(["publish"]);
    expect(sent(connection.stored(only(published(effects))))).toEqual([step("pubrec", 5)]);
    expect(sent(handle({ ...packet, dup: true }))).toEqual([step("pubrec", 5)]);
    expect(sent(handle(step("pubrel", 5), step("pubrel", 5)))).toEqual([
      step("pubcomp", 5),
      { ...step("pubcomp", 5), reasonCode: 0x92 },
    ]);
    expect(published(handle(packet))).toHaveLength(1);
  });

  test("at QoS 2 is not published again by a later connection of a kept session", () => {
    const session = new MqttSession("pump-1");
    const kept = { clean: false, properties: { sessionExpiryInterval: 60 } };
    const first = connected(kept, session);
    const packet = publish(topic, { qos: 2, packetId: 5 });
    const publication = only(published(first.handle(packet)));
    first.connection.lost(null);
    const second = connected(kept, session);
    expect(second.handle({ ...packet, dup: true })).toEqual([]);
    expect(kinds(second.connection.stored(publication))).toEqual(["save", "send"]);
    const third = connected(kept, new MqttSession("pump-1", session.keep()));
    expect(sent(third.handle({ ...packet, dup: true }))).toEqual([step("pubrec", 5)]);
  });

  test("of a session that is kept is saved before its PUBREC and PUBCOMP", () => {
    const { connection, handle } = connected({ version: 4, clean: false });
    const effects = handle(publish(topic, { qos: 2, packetId: 5 }));
    expect(kinds(connection.stored(only(published(effects))))).toEqual(["save", "send"]);
    expect(kinds(handle(step("pubrel", 5)))).toEqual(["save", "send"]);
  });

  test("that was stored for a connection that is gone gets no answer", () => {
    const { connection, handle } = connected();
    const publication = only(published(handle(publish(topic, { qos: 1, packetId: 5 }))));
    connection.lost(null);
    expect(connection.stored(publication)).toEqual([]);
  });

  test("that the service does not take is refused in MQTT 5 alone", () => {
    for (const [version, codes] of [
      [5, [0x97, 0x97]],
      [4, []],
    ] as const) {
      const { connection, handle } = connected({ version });
      const publications = published(
        handle(publish(topic, { qos: 1, packetId: 5 }), publish(topic, { qos: 2, packetId: 6 })),
      );
      const answers = publications.flatMap((publication) =>
        sent(connection.reject(publication, 0x97, "full")),
      );
      expect(answers.map((packet) => "reasonCode" in packet && packet.reasonCode)).toEqual(codes);
    }
  });

  test("passes on the properties that are for its receivers", () => {
    const properties = {
      contentType: "t",
      messageExpiryInterval: 5,
      userProperties: [
        ["b", "1"],
        ["a", "2"],
      ],
      topicAlias: 3,
    } as const;
    const { topicAlias: _, ...passedOn } = properties;
    expect(only(published(connected().handle(publish(topic, { properties })))).properties).toEqual(passedOn);
  });

  test("beyond 1,000 that are not stored stop the reading until some are", () => {
    const { connection, handle } = connected({ version: 4 });
    const packets = Array.from({ length: 1_000 }, (_, at) => publish(topic, { qos: 1, packetId: at + 1 }));
    const publications = published(handle(...packets));
    expect(connection.isReading).toBe(false);
    connection.stored(only(publications));
    expect(connection.isReading).toBe(true);
  });

  test("beyond the receive maximum ends a connection of MQTT 5", () => {
    const { handle } = connected();
    const packets = Array.from({ length: 1_001 }, (_, at) => publish(topic, { qos: 2, packetId: at + 1 }));
    expect(sent(handle(...packets))).toMatchObject([{ type: "disconnect", reasonCode: 0x93 }]);
  });
});

describe("a message on a topic that the device may not use", () => {
  const foreign = "db/pump-2/temp";

  test("is refused in MQTT 5 with the topics that are allowed", () => {
    const effects = connected().handle(
      publish(foreign, { qos: 1, packetId: 5 }),
      publish(foreign, { qos: 2, packetId: 6 }),
    );
    expect(effects).toMatchObject([
      { do: "report", refusal: { name: "publication_refused", reason: "topic", topic: foreign } },
      {
        do: "send",
        packet: {
          type: "puback",
          reasonCode: 0x87,
          properties: { reasonString: expect.stringContaining("publish below `db/pump-1/`") },
        },
      },
      { do: "report" },
      { do: "send", packet: { type: "pubrec", reasonCode: 0x87 } },
    ]);
  });

  test("is acknowledged in MQTT 3.1.1 at each QoS and reported", () => {
    const { handle } = connected({ version: 4 });
    const effects = handle(
      publish(foreign),
      publish(foreign, { qos: 1, packetId: 5 }),
      publish(foreign, { qos: 2, packetId: 6 }),
      step("pubrel", 6),
    );
    expect(kinds(effects)).toEqual(["report", "report", "send", "report", "send", "send"]);
    expect(sent(effects)).toMatchObject([{ type: "puback" }, { type: "pubrec" }, { type: "pubcomp" }]);
  });

  test("does not take a place of the receive maximum", () => {
    const { handle } = connected();
    const packets = Array.from({ length: 2_000 }, (_, at) => publish(foreign, { qos: 2, packetId: at + 1 }));
    expect(kinds(handle(...packets))).not.toContain("close");
  });

  test("or of more than 4,096 bytes is refused by its length", () => {
    const long = `db/pump-1/${"é".repeat(2_100)}`;
    expect(connected().handle(publish(long, { qos: 1, packetId: 5 }))).toMatchObject([
      { do: "report", refusal: { reason: "topic_too_long" } },
      { do: "send", packet: { reasonCode: 0x90 } },
    ]);
  });
});

test("a payload of more than 256 KB ends the connection with its size", () => {
  const payload = Buffer.alloc(262_145);
  expect(connected().handle(publish(topic, { payload }))).toMatchObject([
    { do: "report", refusal: { reason: "too_large", topic } },
    { do: "send", packet: { type: "disconnect", reasonCode: 0x95 } },
    { do: "close", reason: "too_large", detail: "a payload has 262145 bytes, of at most 262144" },
  ]);
});

describe("a topic alias", () => {
  test("names the topic of later messages", () => {
    const effects = connected().handle(
      publish(topic, { properties: { topicAlias: 16 } }),
      publish("", { properties: { topicAlias: 16 } }),
    );
    expect(published(effects).map((one) => one.topic)).toEqual([topic, topic]);
  });

  test.each([0, 17, 5])("of %i that is out of range or unknown ends the connection", (topicAlias) => {
    expect(sent(connected().handle(publish("", { properties: { topicAlias } })))).toMatchObject([
      { type: "disconnect", reasonCode: 0x94 },
    ]);
  });

  test("of a topic that is too long is forgotten", () => {
    const properties = { topicAlias: 1 };
    const effects = connected().handle(
      publish(`db/pump-1/${"x".repeat(5_000)}`, { properties }),
      publish("", { properties }),
    );
    expect(kinds(effects)).toEqual(["report", "send", "close"]);
  });
});
