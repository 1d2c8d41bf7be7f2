import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { maxPacketBytes, PacketStream } from "../src/packets/packet-stream.ts";
import { bytesOf, connectBytes } from "./reference-codec.ts";

/** A fixed seed: a failure can be repeated, and the suite takes as long each time. */
const seed = 37;

const seeds = [3, 4, 5].flatMap((version) => {
  const protocol = version as 3 | 4 | 5;
  const properties = protocol === 5 ? { properties: { userProperties: { a: "b" }, contentType: "t" } } : {};
  const will = { topic: "db/pump-1/w", payload: Buffer.from("w"), qos: 1 as const, retain: false };
  return [
    connectBytes(protocol, { will }),
    bytesOf(
      {
        cmd: "publish",
        topic: "db/pump-1/t",
        payload: "21",
        qos: 2,
        messageId: 5,
        dup: true,
        retain: true,
        ...properties,
      },
      protocol,
    ),
    bytesOf(
      {
        cmd: "subscribe",
        messageId: 6,
        subscriptions: [
          { topic: "pump-1/#", qos: 1 },
          { topic: "pump-1/+/é", qos: 2 },
        ],
      },
      protocol,
    ),
    bytesOf({ cmd: "unsubscribe", messageId: 7, unsubscriptions: ["pump-1/#"] }, protocol),
    bytesOf({ cmd: "pubrel", messageId: 8 }, protocol),
    bytesOf({ cmd: "disconnect" }, protocol),
  ];
});

/** Packets with some bytes changed, or bytes that never were a packet. */
const damaged = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 4 }),
      fc.nat(200),
    )
    .map(([bytes, changes, cut]) => {
      const copy = Buffer.from(bytes);
      for (const [at, value] of changes) if (at < copy.length) copy[at] = value;
      return cut < 20 ? copy.subarray(0, Math.max(1, copy.length - cut)) : copy;
    }),
  fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
);

test("no bytes make the reader throw, read beyond them, or keep more than came", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(3 as const, 4 as const, 5 as const, null),
      fc.array(damaged, { minLength: 1, maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
      (version, parts, cuts) => {
        const stream = new PacketStream();
        const bytes = Buffer.concat([...(version === null ? [] : [connectBytes(version)]), ...parts]);
        let came = 0;
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const piece = bytes.subarray(at, at + (cuts[turn % cuts.length] ?? 1));
          at += piece.length;
          came += piece.length;
          stream.push(piece);
          for (let next = stream.next(); next !== null; next = stream.next()) {
            if (next.type === "fault") {
              expect(next.code).toBeGreaterThanOrEqual(0x80);
              return;
            }
            if (next.type === "publish") expect(next.payload.length).toBeLessThan(came);
          }
          expect(stream.unreadBytes).toBeLessThanOrEqual(Math.min(came, maxPacketBytes));
        }
      },
    ),
    { seed, numRuns: 5_000 },
  );
});
