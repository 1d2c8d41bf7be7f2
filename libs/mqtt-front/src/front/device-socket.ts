import type { Duplex } from "node:stream";
import type { Clock } from "@devmesh/service-kit/clock";
import { encodePacket } from "../packets/encode-packet.ts";
import type { ConnectPacket } from "../packets/packet.ts";
import { PacketStream } from "../packets/packet-stream.ts";
import { reasonCodes } from "../packets/reason-code.ts";
import type {
  Effect,
  EndReason,
  GrantedSubscription,
  Publication,
  SessionRefusal,
} from "../session/effect.ts";
import { MqttConnection } from "../session/mqtt-connection.ts";

/** Bytes that a client may send after its CONNECT before that is answered. */
const maxEarlyBytes = 4 * 1024;

/** Bytes that wait to be written; beyond it the client is too slow. */
const maxUnwrittenBytes = 1024 * 1024;

/** How long a closed connection may take to send what was written, in milliseconds. */
const closingMs = 2_000;

/** The front, as a connection sees it. */
export interface SocketOwner {
  /** Whether messages of sockets are taken; if not, `resumeReading` is called later. */
  readonly isTaking: boolean;
  login(socket: DeviceSocket, connect: ConnectPacket): void;
  publish(socket: DeviceSocket, publication: Publication): void;
  publishWill(socket: DeviceSocket, publication: Publication, delayMs: number): void;
  sendRetained(socket: DeviceSocket, subscriptions: readonly GrantedSubscription[]): void;
  report(socket: DeviceSocket, refusal: SessionRefusal): void;
  dropped(why: "expired" | "too_large"): void;
  /** The last call for a connection. */
  closed(socket: DeviceSocket, reason: EndReason, detail: string | null): void;
}

/** Options of a {@link DeviceSocket}. */
export interface DeviceSocketOptions {
  readonly stream: Duplex;
  /** Of the client, or of the proxy where none says more. */
  readonly address: string;
  readonly owner: SocketOwner;
  readonly clock: Clock;
  readonly maxSessionExpiryMs: number;
}

/** Runs the state machine of a connection over a socket. */
export class DeviceSocket {
  readonly address: string;
  readonly connection: MqttConnection;
  readonly #stream: Duplex;
  readonly #owner: SocketOwner;
  readonly #clock: Clock;
  readonly #packets = new PacketStream();
  #isCorked = false;
  #isHandling = false;
  #heldUntilMs = 0;
  #error: string | null = null;

  constructor({ stream, address, owner, clock, maxSessionExpiryMs }: DeviceSocketOptions) {
    this.address = address;
    this.#stream = stream;
    this.#owner = owner;
    this.#clock = clock;
    this.connection = new MqttConnection({ now: () => clock.monotonicMs(), maxSessionExpiryMs });
    stream.on("data", (piece: Buffer) => {
      if (this.connection.state === "closed") return;
      this.#packets.push(piece);
      this.resumeReading();
    });
    stream.on("error", (error: NodeJS.ErrnoException) => {
      this.#error ??= error.code ?? error.message;
    });
    stream.on("close", () => this.run(this.connection.lost(this.#error)));
  }

  /** Carries out what the state machine asks for. */
  run(effects: readonly Effect[]): void {
    for (const effect of effects) this.#runOne(effect);
  }

  /** Handles what has come, as far as it may be handled now, and reads on. */
  resumeReading(): void {
    // What a packet causes may call this.
    if (this.#isHandling) return;
    this.#isHandling = true;
    const isEmpty = this.#handlePackets();
    this.#isHandling = false;
    if (isEmpty) {
      if (this.#stream.isPaused()) this.#stream.resume();
      return;
    }
    if (this.connection.state !== "closed") this.#stream.pause();
    if (this.connection.state === "deciding" && this.#packets.unreadBytes > maxEarlyBytes)
      this.run(
        this.connection.handle({
          type: "fault",
          code: reasonCodes.quotaExceeded,
          detail: `more than ${maxEarlyBytes} bytes came before the answer to the CONNECT`,
        }),
      );
  }

  /** Whether all packets that came were handled. */
  #handlePackets(): boolean {
    while (this.#mayRead) {
      const packet = this.#packets.next();
      if (packet === null) return true;
      this.run(this.connection.handle(packet));
    }
    return false;
  }

  /** Reads nothing for so many milliseconds. */
  hold(ms: number): void {
    const until = this.#clock.monotonicMs() + ms;
    if (until <= this.#heldUntilMs) return;
    const isHeld = this.#heldUntilMs > 0;
    this.#heldUntilMs = until;
    if (!isHeld) this.#endHoldLater();
  }

  #endHoldLater(): void {
    const leftMs = this.#heldUntilMs - this.#clock.monotonicMs();
    if (leftMs > 0) {
      this.#clock.schedule(leftMs, () => this.#endHoldLater());
      return;
    }
    this.#heldUntilMs = 0;
    this.resumeReading();
  }

  get #mayRead(): boolean {
    return this.connection.isReading && this.#owner.isTaking && this.#heldUntilMs === 0;
  }

  #runOne(effect: Effect): void {
    switch (effect.do) {
      case "send":
        this.#write(encodePacket(effect.packet, this.connection));
        break;
      case "login":
        this.#owner.login(this, effect.connect);
        break;
      case "publish":
        this.#owner.publish(this, effect.publication);
        break;
      case "will":
        this.#owner.publishWill(this, effect.publication, effect.delayMs);
        break;
      case "send_retained":
        this.#owner.sendRetained(this, effect.subscriptions);
        break;
      case "report":
        this.#owner.report(this, effect.refusal);
        break;
      case "count_dropped":
        this.#owner.dropped(effect.why);
        break;
      case "save":
        // Sessions live in the memory of this process so far.
        break;
      case "close":
        this.#close();
        this.#owner.closed(this, effect.reason, effect.detail);
        break;
    }
  }

  /** All that is written in one turn leaves together. */
  #write(bytes: Buffer): void {
    if (this.#stream.destroyed) return;
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#stream.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        this.#stream.uncork();
      });
    }
    this.#stream.write(bytes);
    if (this.#stream.writableLength > maxUnwrittenBytes && this.connection.state === "connected")
      this.run(this.connection.end("slow", "too much waits to be written"));
  }

  #close(): void {
    if (this.#stream.destroyed) return;
    this.#stream.end();
    // Later bytes are read and dropped, so that the end of the stream is noticed.
    this.#stream.resume();
    this.#clock.schedule(closingMs, () => this.#stream.destroy());
  }
}
