import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import type { IncomingPacket, OutgoingPacket } from "../src/packets/packet.ts";
import { noProperties } from "../src/packets/properties.ts";
import type { Effect, Publication } from "../src/session/effect.ts";
import type { MqttConnection } from "../src/session/mqtt-connection.ts";
import { MqttSession } from "../src/session/mqtt-session.ts";
import { maxInFlight, maxInFlightBytes, maxWaitingBytes } from "../src/session/outgoing-window.ts";
import {
  connected,
  message,
  openConnection,
  publish,
  published,
  sent,
  step,
  subscribe,
} from "./connection-fixture.ts";

const seed = 37;
const kept = { clean: false, properties: { sessionExpiryInterval: 600, receiveMaximum: 8 } } as const;

/** The lowest number that is not in use. */
function freeId(used: { has(id: number): boolean }): number {
  let id = 1;
  while (used.has(id)) id++;
  return id;
}

/**
 * A client that follows the specification, its session in a front, and a network between them that loses all that is
 * under way when it is cut.
 */
class LossyWorld {
  readonly session = new MqttSession("pump-1");
  readonly taken: string[] = [];
  readonly received: string[] = [];
  #connection: MqttConnection | null = null;
  /** Publications that are being stored, which a cut does not end. */
  readonly #storing: { readonly publication: Publication; readonly by: MqttConnection }[] = [];
  #toServer: IncomingPacket[] = [];
  #toClient: OutgoingPacket[] = [];
  /** Messages of the client that are not complete, by packet id, in order. */
  readonly #clientSends = new Map<number, { readonly text: string; isReleased: boolean }>();
  /** Packet ids of what the client has received and the front has not released. */
  readonly #clientHolds = new Set<number>();
  /** Packet ids of what the front has sent and the client has not completed. */
  readonly #frontSends = new Set<number>();
  #sentTexts = 0;

  constructor() {
    this.reconnect();
    this.#connection?.handle(subscribe("pump-1/#", 2));
  }

  get textsSent(): number {
    return this.#sentTexts;
  }

  get isQuiet(): boolean {
    return this.#toServer.length + this.#toClient.length + this.#storing.length === 0;
  }

  reconnect(): void {
    this.#connection?.lost("cut");
    this.#toServer = [];
    this.#toClient = [];
    const { connection, admitted } = connected(kept, this.session);
    this.#connection = connection;
    this.#run(admitted);
    for (const [packetId, { text, isReleased }] of this.#clientSends)
      this.#toServer.push(isReleased ? step("pubrel", packetId) : this.#publish(packetId, text, true));
  }

  clientPublishes(): void {
    // As many as the front takes; here it is enough to be below it.
    if (this.#clientSends.size >= 20) return;
    const packetId = freeId(this.#clientSends);
    const text = `c${this.#sentTexts++}`;
    this.#clientSends.set(packetId, { text, isReleased: false });
    this.#toServer.push(this.#publish(packetId, text, false));
  }

  meshSends(text: string): void {
    const delivery = this.#connection?.deliver(message("pump-1/x", { qos: 2, payload: Buffer.from(text) }));
    expect(delivery?.isMatched).toBe(true);
    this.#run(delivery?.effects ?? []);
  }

  serverReads(): void {
    const packet = this.#toServer.shift();
    if (packet !== undefined) this.#run(this.#connection?.handle(packet) ?? []);
  }

  stores(): void {
    const stored = this.#storing.shift();
    if (stored !== undefined) this.#run((this.#connection ?? stored.by).stored(stored.publication));
  }

  clientReads(): void {
    const packet = this.#toClient.shift();
    if (packet === undefined) return;
    if (packet.type === "publish") {
      if (!this.#clientHolds.has(packet.packetId)) this.received.push(packet.payload.toString());
      this.#clientHolds.add(packet.packetId);
      this.#toServer.push(step("pubrec", packet.packetId));
    } else if (packet.type === "pubrel") {
      this.#clientHolds.delete(packet.packetId);
      this.#toServer.push(step("pubcomp", packet.packetId));
    } else if (packet.type === "pubrec") {
      const own = this.#clientSends.get(packet.packetId);
      if (own === undefined) return;
      own.isReleased = true;
      this.#toServer.push(step("pubrel", packet.packetId));
    } else if (packet.type === "pubcomp") this.#clientSends.delete(packet.packetId);
    else expect(packet.type).toBe("connack");
  }

  #publish(packetId: number, text: string, dup: boolean): IncomingPacket {
    return publish("db/pump-1/x", { qos: 2, packetId, dup, payload: Buffer.from(text) });
  }

  #run(effects: readonly Effect[]): void {
    expect(effects.some((effect) => effect.do === "close")).toBe(false);
    for (const publication of published(effects)) {
      this.taken.push(publication.payload.toString());
      if (this.#connection !== null) this.#storing.push({ publication, by: this.#connection });
    }
    for (const packet of sent(effects)) {
      if (packet.type === "publish") {
        // An id in use is sent again only as such.
        expect(this.#frontSends.has(packet.packetId)).toBe(packet.dup);
        this.#frontSends.add(packet.packetId);
      }
      this.#toClient.push(packet);
    }
    for (const id of this.#frontSends) if (!this.session.outgoing.isInFlight(id)) this.#frontSends.delete(id);
  }
}

test("at QoS 2 each message arrives exactly once in both directions, whenever the network is cut", () => {
  const action = fc.constantFrom(
    ...([
      "publish",
      "deliver",
      "serverReads",
      "serverReads",
      "stores",
      "clientReads",
      "clientReads",
    ] as const),
    "cut" as const,
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
      const world = new LossyWorld();
      let delivered = 0;
      for (const one of actions) {
        if (one === "publish") world.clientPublishes();
        else if (one === "deliver") world.meshSends(`m${delivered++}`);
        else if (one === "cut") world.reconnect();
        else world[one]();
      }
      world.reconnect();
      while (!world.isQuiet) {
        world.serverReads();
        world.stores();
        world.clientReads();
      }
      expect(world.taken).toEqual(Array.from({ length: world.textsSent }, (_, at) => `c${at}`));
      expect(world.received).toEqual(Array.from({ length: delivered }, (_, at) => `m${at}`));
      expect(world.session.outgoing).toMatchObject({ inFlight: 0, waiting: 0, bytes: 0 });
      expect([...world.session.incoming.held]).toEqual([]);
    }),
    { seed, numRuns: 1_000 },
  );
});

describe("whatever a client sends, in any order", () => {
  const packetId = fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constantFrom(65_535, 100));
  const qos = fc.constantFrom(0 as const, 1 as const, 2 as const);
  const topic = fc.constantFrom("db/pump-1/x", "pump-1/event/y", "db/pump-2/x", "", "x".repeat(5_000));
  const alias = fc.constantFrom(undefined, 0, 1, 17);
  const anyPublish = fc.record({ topic, qos, packetId, dup: fc.boolean(), alias }).map((one) =>
    publish(one.topic, {
      qos: one.qos,
      packetId: one.qos === 0 ? 0 : one.packetId,
      dup: one.dup,
      properties: one.alias === undefined ? noProperties : { topicAlias: one.alias },
    }),
  );
  const anyStep = fc
    .tuple(
      fc.constantFrom("puback", "pubrec", "pubrel", "pubcomp"),
      packetId,
      fc.constantFrom(0, 0x10, 0x92, 0x97),
    )
    .map(([type, id, code]) => step(type as "puback", id, code));
  const anySubscribe = fc
    .tuple(fc.constantFrom("pump-1/#", "pump-1/+/y", "#", "$share/g/x", "pump-1/a#", ""), qos, fc.boolean())
    .map(([filter, level, noLocal]) => subscribe(filter, level, { noLocal }));
  const anyPacket: fc.Arbitrary<IncomingPacket> = fc.oneof(
    { arbitrary: anyPublish, weight: 6 },
    { arbitrary: anyStep, weight: 6 },
    { arbitrary: anySubscribe, weight: 2 },
    fc.constant<IncomingPacket>({
      type: "unsubscribe",
      packetId: 3,
      filters: ["pump-1/#", ""],
      properties: {},
    }),
    fc.constantFrom<IncomingPacket>({ type: "pingreq" }, { type: "pingreq" }, { type: "auth" }),
  );
  const anyAction = fc.oneof(
    { arbitrary: anyPacket, weight: 8 },
    { arbitrary: fc.record({ deliver: qos, bytes: fc.constantFrom(0, 10, 400_000) }), weight: 6 },
    { arbitrary: fc.constantFrom("stored" as const, "tick" as const), weight: 3 },
    { arbitrary: fc.constantFrom("lost" as const, "end" as const), weight: 1 },
  );

  test("nothing throws, ids in flight are not given twice, and memory is bounded", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(3 as const, 4 as const, 5 as const),
        fc.array(anyAction, { maxLength: 150 }),
        (version, actions) => {
          const session = new MqttSession("pump-1");
          const open = () =>
            connected({ version, clean: false, properties: version === 5 ? kept.properties : {} }, session);
          let current = open();
          const inFlight = new Set<number>();
          const storing: Publication[] = [];
          const check = (effects: readonly Effect[]) => {
            storing.push(...published(effects).filter((publication) => publication.qos > 0));
            for (const packet of sent(effects)) {
              if (packet.type !== "publish" || packet.qos === 0) continue;
              if (!packet.dup) expect(inFlight.has(packet.packetId)).toBe(false);
              inFlight.add(packet.packetId);
            }
            for (const id of inFlight) if (!session.outgoing.isInFlight(id)) inFlight.delete(id);
            expect(session.outgoing.inFlight).toBeLessThanOrEqual(maxInFlight);
            expect(session.outgoing.bytes).toBeLessThan(maxInFlightBytes + maxWaitingBytes + 500_000);
          };
          for (const one of actions) {
            const { connection, time } = current;
            time.nowMs += 1_000;
            if (one === "stored") {
              const publication = storing.shift();
              if (publication !== undefined) check(connection.stored(publication));
            } else if (one === "tick") check(connection.tick());
            else if (one === "lost") check(connection.lost(null));
            else if (one === "end") check(connection.end("server_stop"));
            else if ("deliver" in one) {
              const payload = Buffer.alloc(one.bytes);
              check(connection.deliver(message("pump-1/z", { qos: one.deliver, payload })).effects);
            } else check(connection.handle(one));
            if (connection.state === "closed") {
              expect(connection.handle({ type: "pingreq" })).toEqual([]);
              current = open();
              check(current.admitted);
            }
          }
        },
      ),
      { seed, numRuns: 1_000 },
    );
  });

  test("a connection before its login closes for all but a CONNECT", () => {
    fc.assert(
      fc.property(anyPacket, (packet) => {
        const connection = openConnection();
        connection.handle(packet);
        expect(connection.state).toBe("closed");
      }),
      { seed },
    );
  });
});
