import { describe, expect, test } from "@jest/globals";
import { maxConnectBytes, maxPacketBytes, PacketStream } from "../src/packets/packet-stream.ts";
import { bytesOf, connectBytes, readAll, readPieces } from "./reference-codec.ts";

describe("a CONNECT", () => {
  test.each([3, 4, 5] as const)("of version %i is read with all its members", (version) => {
    const will = { topic: "db/pump-1/gone", payload: Buffer.from("x"), qos: 1 as const, retain: true };
    const properties =
      version === 5
        ? { sessionExpiryInterval: 60, receiveMaximum: 5, userProperties: { a: ["1", "2"], b: "3" } }
        : undefined;
    expect(readPieces([connectBytes(version, { will, clean: false, properties })])).toEqual([
      {
        type: "connect",
        version,
        clean: false,
        keepAlive: 60,
        clientId: "pump-1",
        userName: "pump-1",
        password: Buffer.from("secret"),
        will: { ...will, properties: {} },
        properties:
          version === 5
            ? {
                sessionExpiryInterval: 60,
                receiveMaximum: 5,
                userProperties: [
                  ["a", "1"],
                  ["a", "2"],
                  ["b", "3"],
                ],
              }
            : {},
      },
    ]);
  });

  test("has at most 2 KB: a longer one is refused before its bytes have come", () => {
    const fitting = connectBytes(4, { password: Buffer.alloc(maxConnectBytes - 100) });
    expect(readPieces([fitting])).toMatchObject([{ type: "connect" }]);
    const larger = connectBytes(4, { password: Buffer.alloc(maxConnectBytes) });
    expect(readPieces([larger.subarray(0, 5)])).toMatchObject([{ type: "fault", code: 0x95 }]);
  });

  test("is the first packet: TLS and other protocols are named at their first byte", () => {
    expect(readPieces([Buffer.from([0x16])])).toMatchObject([
      { type: "fault", detail: "TLS on a port without it" },
    ]);
    expect(readPieces([Buffer.from("GET / HTTP/1.1")])).toMatchObject([
      { type: "fault", code: 0x82, detail: "the first packet is no CONNECT" },
    ]);
  });

  test("of another version or protocol is refused", () => {
    const other = Buffer.from(connectBytes(4));
    other[8] = 6;
    expect(readPieces([other])).toMatchObject([{ code: 0x84, detail: "version 6 of MQTT is not spoken" }]);
    other[4] = 0x4e;
    expect(readPieces([other])).toMatchObject([{ code: 0x81 }]);
  });

  test.each([
    ["reserved", 0x03],
    ["will QoS without a will", 0x0a],
    ["will retain without a will", 0x22],
    ["a password without a user name", 0x42],
    ["a will QoS of 3", 0x1e],
  ])("with the flags of %s is malformed", (_, flags) => {
    const bytes = Buffer.from(connectBytes(4, { username: undefined, password: undefined }));
    bytes[9] = flags;
    expect(readPieces([bytes])).toMatchObject([{ type: "fault", code: 0x81 }]);
  });
});

describe("a packet", () => {
  const publish = { cmd: "publish", topic: "db/pump-1/a b.*>é", qos: 1, dup: true, retain: true } as const;
  const packets = [
    bytesOf({ ...publish, messageId: 7, payload: "21" }),
    bytesOf({ cmd: "subscribe", messageId: 8, subscriptions: [{ topic: "pump-1/#", qos: 1 }] }),
    bytesOf({ cmd: "unsubscribe", messageId: 9, unsubscriptions: ["pump-1/#", "a"] }),
    bytesOf({ cmd: "puback", messageId: 10 }),
    bytesOf({ cmd: "pubrec", messageId: 11 }),
    bytesOf({ cmd: "pubrel", messageId: 12 }),
    bytesOf({ cmd: "pubcomp", messageId: 13 }),
    bytesOf({ cmd: "pingreq" }),
    bytesOf({ cmd: "disconnect" }),
  ];
  const expected = [
    {
      type: "publish",
      topic: publish.topic,
      qos: 1,
      dup: true,
      retain: true,
      packetId: 7,
      payload: Buffer.from("21"),
    },
    { type: "subscribe", packetId: 8, subscriptions: [{ filter: "pump-1/#", qos: 1 }] },
    { type: "unsubscribe", packetId: 9, filters: ["pump-1/#", "a"] },
    { type: "puback", packetId: 10, reasonCode: 0 },
    { type: "pubrec", packetId: 11 },
    { type: "pubrel", packetId: 12 },
    { type: "pubcomp", packetId: 13 },
    { type: "pingreq" },
    { type: "disconnect", reasonCode: 0 },
  ];

  test("is read wherever the bytes are cut", () => {
    const all = Buffer.concat([connectBytes(4), ...packets]);
    for (let size = 1; size < all.length + 1; size++) {
      const pieces = Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
        all.subarray(at * size, (at + 1) * size),
      );
      expect(readPieces(pieces)).toMatchObject([{ type: "connect" }, ...expected]);
    }
  });

  test("that comes in one piece is not copied", () => {
    const stream = new PacketStream();
    stream.push(connectBytes(4));
    stream.next();
    const piece = Buffer.concat([packets[0] ?? Buffer.alloc(0), packets[7] ?? Buffer.alloc(0)]);
    stream.push(piece);
    const packet = stream.next();
    expect(packet?.type === "publish" && packet.payload.buffer === piece.buffer).toBe(true);
  });

  test("in many tiny pieces takes no more than twice its bytes", () => {
    const stream = new PacketStream();
    stream.push(connectBytes(4));
    stream.next();
    const whole = bytesOf({ ...publish, messageId: 7, payload: Buffer.alloc(100_000, 1) });
    let packets = 0;
    for (const byte of whole.subarray(0, -1)) {
      stream.push(Buffer.from([byte]));
      if (stream.next() !== null) packets++;
    }
    expect(packets).toBe(0);
    expect(stream.unreadBytes).toBe(whole.length - 1);
    stream.push(whole.subarray(-1));
    expect(stream.next()).toMatchObject({ type: "publish", payload: Buffer.alloc(100_000, 1) });
    expect(stream.unreadBytes).toBe(0);
  });

  test("larger than the bound is refused at its length", () => {
    const length = Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f]);
    expect(readAll(length)).toEqual([
      { type: "fault", code: 0x95, detail: `a packet has 268435460 bytes, of at most ${maxPacketBytes}` },
    ]);
  });

  test("of 256 KB with a long topic is taken", () => {
    const bytes = bytesOf({
      ...publish,
      topic: "a".repeat(4_096),
      messageId: 1,
      payload: Buffer.alloc(262_144),
    });
    expect(readAll(bytes)).toMatchObject([{ type: "publish" }]);
  });
});

describe("bytes that are no packet end the connection with a reason", () => {
  const malformed = 0x81;
  const protocolError = 0x82;
  test.each([
    ["a length of five bytes", 4, malformed, [0x30, 0xff, 0xff, 0xff, 0xff, 1]],
    ["the type 0", 4, malformed, [0, 0]],
    ["a packet of a server", 4, malformed, [0x20, 2, 0, 0]],
    ["AUTH in MQTT 3", 4, malformed, [0xf0, 0]],
    ["flags of a PUBACK", 4, malformed, [0x41, 2, 0, 1]],
    ["no flags of a SUBSCRIBE", 4, malformed, [0x80, 6, 0, 1, 0, 1, 97, 0]],
    ["a body of a PINGREQ", 4, malformed, [0xc0, 1, 0]],
    ["a body of a DISCONNECT in MQTT 3", 4, malformed, [0xe0, 1, 0]],
    ["a packet id that reaches into the next packet", 4, malformed, [0x32, 4, 0, 1, 97, 0, 0xc0, 0]],
    ["a PUBACK of one byte", 4, malformed, [0x40, 1, 0, 0xc0, 0]],
    ["bytes after a PUBACK", 4, malformed, [0x40, 3, 0, 1, 0]],
    ["the packet id 0", 4, protocolError, [0x32, 5, 0, 1, 97, 0, 0]],
    ["a QoS of 3", 4, malformed, [0x36, 5, 0, 1, 97, 0, 1]],
    ["DUP at QoS 0", 4, malformed, [0x38, 3, 0, 1, 97]],
    ["a topic that is no UTF-8", 4, malformed, [0x30, 3, 0, 1, 0xff]],
    ["a surrogate in a topic", 4, malformed, [0x30, 5, 0, 3, 0xed, 0xa0, 0x80]],
    ["U+0000 in a topic", 4, malformed, [0x30, 3, 0, 1, 0]],
    ["a topic with a wildcard", 4, 0x90, [0x30, 3, 0, 1, 0x23]],
    ["an empty topic", 4, protocolError, [0x30, 2, 0, 0]],
    ["an empty topic without an alias", 5, protocolError, [0x30, 3, 0, 0, 0]],
    ["a SUBSCRIBE without filters", 4, malformed, [0x82, 2, 0, 1]],
    ["an UNSUBSCRIBE without filters", 4, malformed, [0xa2, 2, 0, 1]],
    ["a subscription at QoS 3", 4, malformed, [0x82, 6, 0, 1, 0, 1, 97, 3]],
    ["reserved options in MQTT 3", 4, malformed, [0x82, 6, 0, 1, 0, 1, 97, 4]],
    ["reserved options in MQTT 5", 5, malformed, [0x82, 7, 0, 1, 0, 0, 1, 97, 0x40]],
    ["the retain handling 3", 5, protocolError, [0x82, 7, 0, 1, 0, 0, 1, 97, 0x30]],
    ["properties that end after their packet", 5, malformed, [0x30, 5, 0, 1, 97, 100, 1]],
    ["a property that ends after its properties", 5, malformed, [0x30, 6, 0, 1, 97, 2, 2, 0, 0, 0, 0]],
    ["an unknown property", 5, malformed, [0x30, 6, 0, 1, 97, 2, 99, 0]],
    ["a property of another packet", 5, malformed, [0x30, 9, 0, 1, 97, 5, 17, 0, 0, 0, 1]],
    ["a property twice", 5, protocolError, [0x30, 10, 0, 1, 97, 6, 35, 0, 1, 35, 0, 2]],
    ["a payload format of 2", 5, protocolError, [0x30, 6, 0, 1, 97, 2, 1, 2]],
    ["the subscription identifier 0", 5, protocolError, [0x82, 9, 0, 1, 2, 11, 0, 0, 1, 97, 0]],
    ["a user property without a value", 5, malformed, [0x30, 8, 0, 1, 97, 4, 38, 0, 1, 97]],
  ] as const)("%s", (_, version, code, bytes) => {
    expect(readAll(Buffer.from(bytes), version)).toEqual([
      { type: "fault", code, detail: expect.any(String) },
    ]);
  });

  test("more than 100 user properties", () => {
    const userProperties = { a: Array.from({ length: 101 }, () => "1") };
    const publish = { cmd: "publish", topic: "a", payload: "", qos: 0, dup: false, retain: false } as const;
    expect(readAll(bytesOf({ ...publish, properties: { userProperties } }, 5), 5)).toMatchObject([
      { code: 0x97 },
    ]);
  });

  test("more than 1,000 topic filters", () => {
    const subscriptions = Array.from({ length: 1_001 }, () => ({ topic: "a", qos: 0 as const }));
    expect(readAll(bytesOf({ cmd: "subscribe", messageId: 1, subscriptions }))).toMatchObject([
      { code: 0x95 },
    ]);
  });

  test("nothing is read after a fault", () => {
    const stream = new PacketStream();
    stream.push(connectBytes(4));
    stream.next();
    stream.push(Buffer.from([0x00, 0x00, 0xc0, 0x00]));
    const fault = stream.next();
    stream.push(Buffer.from([0xc0, 0x00]));
    expect(fault).toMatchObject({ type: "fault" });
    expect(stream.next()).toBe(fault);
  });
});

test("a DISCONNECT of MQTT 5 may leave out its reason and its properties", () => {
  const bytes = Buffer.from([0xe0, 1, 4, 0xc0, 0]);
  expect(readAll(bytes, 5)).toMatchObject([{ type: "disconnect", reasonCode: 4 }, { type: "pingreq" }]);
  expect(readAll(Buffer.from([0xe0, 0, 0xc0, 0]), 5)).toMatchObject([
    { type: "disconnect", reasonCode: 0 },
    { type: "pingreq" },
  ]);
});
