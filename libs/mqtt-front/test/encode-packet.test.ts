import { describe, expect, test } from "@jest/globals";
import { encodePacket, publishBytes } from "../src/packets/encode-packet.ts";
import type { OutgoingPacket, PublishPacket } from "../src/packets/packet.ts";
import { noProperties } from "../src/packets/properties.ts";
import { readByReference } from "./reference-codec.ts";

const publish: PublishPacket = {
  type: "publish",
  topic: "pump-1/shadow/delta é",
  payload: Buffer.from("{}"),
  qos: 2,
  retain: true,
  dup: true,
  packetId: 0x1234,
  properties: noProperties,
};

describe("what the service writes is read by others", () => {
  test.each([4, 5] as const)("a PUBLISH of version %i", (version) => {
    const { topic, payload, qos, retain, dup } = publish;
    const read = { cmd: "publish", topic, payload, qos, retain, dup, messageId: 0x1234 };
    expect(readByReference(publish, version)).toMatchObject([read]);
    const bytes = encodePacket(publish, { version, maximumPacketSize: 1_000 });
    expect(publishBytes(publish, version)).toBe(bytes.length);
  });

  test("a PUBLISH with all properties", () => {
    const properties = {
      payloadFormatIndicator: 1,
      messageExpiryInterval: 70_000,
      topicAlias: 3,
      responseTopic: "pump-1/r",
      correlationData: Buffer.from([1, 2]),
      subscriptionIdentifiers: [1, 200_000],
      contentType: "text",
      userProperties: [
        ["b", "1"],
        ["a", "2"],
        ["b", "3"],
      ],
    } as const;
    expect(readByReference({ ...publish, properties }, 5)).toMatchObject([
      {
        properties: {
          payloadFormatIndicator: true,
          messageExpiryInterval: 70_000,
          topicAlias: 3,
          responseTopic: "pump-1/r",
          correlationData: Buffer.from([1, 2]),
          subscriptionIdentifier: [1, 200_000],
          contentType: "text",
          userProperties: { b: ["1", "3"], a: "2" },
        },
      },
    ]);
  });

  test.each([
    [
      "a CONNACK",
      { type: "connack", sessionPresent: true, reasonCode: 0, properties: {} },
      { sessionPresent: true },
    ],
    [
      "a PUBACK",
      { type: "puback", packetId: 300, reasonCode: 0, properties: noProperties },
      { messageId: 300 },
    ],
    [
      "a PUBREL",
      { type: "pubrel", packetId: 300, reasonCode: 0, properties: noProperties },
      { messageId: 300 },
    ],
    [
      "a SUBACK",
      { type: "suback", packetId: 9, reasonCodes: [0, 1, 0x87], properties: noProperties },
      { granted: [0, 1, 0x80] },
    ],
    [
      "an UNSUBACK",
      { type: "unsuback", packetId: 9, reasonCodes: [0], properties: noProperties },
      { messageId: 9 },
    ],
    ["a PINGRESP", { type: "pingresp" }, { cmd: "pingresp" }],
  ] as [string, OutgoingPacket, object][])("%s of MQTT 3.1.1", (_, packet, expected) => {
    expect(readByReference(packet, 4)).toMatchObject([expected]);
  });

  test.each([
    [
      "a CONNACK",
      {
        type: "connack",
        sessionPresent: false,
        reasonCode: 0,
        properties: { receiveMaximum: 9, assignedClientIdentifier: "x" },
      },
      { reasonCode: 0, properties: { receiveMaximum: 9, assignedClientIdentifier: "x" } },
    ],
    [
      "a PUBACK with a reason",
      { type: "puback", packetId: 300, reasonCode: 0x87, properties: { reasonString: "no" } },
      { messageId: 300, reasonCode: 0x87, properties: { reasonString: "no" } },
    ],
    [
      "a SUBACK",
      { type: "suback", packetId: 9, reasonCodes: [2, 0x9e], properties: noProperties },
      { granted: [2, 0x9e] },
    ],
    [
      "an UNSUBACK",
      { type: "unsuback", packetId: 9, reasonCodes: [0x11], properties: noProperties },
      { granted: [0x11] },
    ],
    [
      "a DISCONNECT",
      { type: "disconnect", reasonCode: 0x8e, properties: noProperties },
      { reasonCode: 0x8e },
    ],
  ] as [string, OutgoingPacket, object][])("%s of MQTT 5", (_, packet, expected) => {
    expect(readByReference(packet, 5)).toMatchObject([expected]);
  });
});

test("a login that is refused has the return code of MQTT 3.1.1", () => {
  const codes = [0x84, 0x85, 0x88, 0x86, 0x87, 0x97].map((reasonCode) => {
    const packet = { type: "connack", sessionPresent: true, reasonCode, properties: noProperties } as const;
    return [...encodePacket(packet, { version: 4, maximumPacketSize: 9 })];
  });
  expect(codes).toEqual([1, 2, 3, 4, 5, 5].map((code) => [0x20, 2, 0, code]));
});

test("a reason string is left out where the client takes no packet as large", () => {
  const packet = {
    type: "puback",
    packetId: 1,
    reasonCode: 0x87,
    properties: { reasonString: "x".repeat(50) },
  } as const;
  expect(encodePacket(packet, { version: 5, maximumPacketSize: 40 })).toEqual(
    Buffer.from([0x40, 4, 0, 1, 0x87, 0]),
  );
});
