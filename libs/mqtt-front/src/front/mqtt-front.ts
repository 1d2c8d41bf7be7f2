import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import { type MessageToDevice, takeMessagesFor } from "@devmesh/device-broker/device-front";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { AddressQueue } from "../address-queue.ts";
import { UnfinishedConnections } from "../listener/unfinished-connections.ts";
import type { DecideLogin, LoginAnswer } from "../login/decide-login.ts";
import type { ConnectPacket } from "../packets/packet.ts";
import { noProperties } from "../packets/properties.ts";
import { reasonCodes } from "../packets/reason-code.ts";
import { type DeviceRate, type DeviceRateLimits, DeviceRates } from "../rates/device-rates.ts";
import type { EndReason, GrantedSubscription, Publication, SessionRefusal } from "../session/effect.ts";
import type { MessageForDevice } from "../session/mqtt-connection.ts";
import type { MqttSession } from "../session/mqtt-session.ts";
import { deviceTopicsOf } from "../topics/device-topics.ts";
import { DeviceSocket, type SocketOwner } from "./device-socket.ts";
import { MessagePublisher } from "./message-publisher.ts";
import { SessionRegistry } from "./session-registry.ts";

/** How often connections are looked at for their keep-alive, in milliseconds. */
const tickMs = 1_000;

/** Logins that are decided at a time. */
const maxDecisions = 200;

/** How long a login may take, in milliseconds. */
const loginMs = 5_000;

/** An event of a device on its connection. */
export interface ConnectionReport {
  readonly deviceId: string | null;
  readonly clientId: string | null;
  readonly address: string;
}

/** Options of a {@link MqttFront}. */
export interface MqttFrontOptions {
  readonly bus: Bus;
  readonly decide: DecideLogin;
  readonly log: Logger;
  readonly clock: Clock;
  readonly rates: DeviceRateLimits;
  readonly maxSessionExpiryMs: number;
  readonly onRefused: (about: ConnectionReport, refusal: SessionRefusal) => void;
  readonly onClosed: (about: ConnectionReport, reason: EndReason, detail: string | null) => void;
}

/** A device that has a connection here. */
interface ConnectedDevice {
  readonly sockets: Set<DeviceSocket>;
  readonly unsubscribe: () => void;
}

/** The login admitted on a connection. */
interface AdmittedSocket {
  readonly deviceId: string;
  readonly rate: DeviceRate;
  readonly session: MqttSession;
}

/** Devices and their connections of this process: logins, messages in both directions, sessions. */
export class MqttFront implements SocketOwner {
  readonly #options: MqttFrontOptions;
  readonly #publisher: MessagePublisher;
  readonly #sessions: SessionRegistry;
  readonly #rates: DeviceRates;
  readonly #logins = new AddressQueue(maxDecisions);
  readonly #unfinished = new UnfinishedConnections<DeviceSocket>();
  readonly #sockets = new Set<DeviceSocket>();
  readonly #admitted = new Map<DeviceSocket, AdmittedSocket>();
  readonly #devices = new Map<string, ConnectedDevice>();
  readonly #stopping = new AbortController();
  readonly dropCounts = { expired: 0, too_large: 0, rate: 0 };

  constructor(options: MqttFrontOptions) {
    this.#options = options;
    const { bus, log, clock } = options;
    this.#sessions = new SessionRegistry(clock);
    this.#rates = new DeviceRates(options.rates);
    this.#publisher = new MessagePublisher({
      bus,
      log,
      bootId: randomBytes(8).readBigUInt64BE(),
      onRoom: () => {
        for (const socket of this.#sockets) socket.resumeReading();
      },
      signal: this.#stopping.signal,
    });
    this.#tickLater();
  }

  /** Connections with an admitted login. */
  get connections(): number {
    return this.#admitted.size;
  }

  get isTaking(): boolean {
    return this.#publisher.hasRoom;
  }

  /** Serves a connection from its first byte on. */
  accept(stream: Duplex, address: string): void {
    const { clock, maxSessionExpiryMs } = this.#options;
    const socket = new DeviceSocket({ stream, address, owner: this, clock, maxSessionExpiryMs });
    this.#sockets.add(socket);
    const victim = this.#unfinished.add(socket, address);
    victim?.run(victim.connection.lost("too many connections without a CONNECT"));
  }

  /** Closes all connections evenly over a time, and waits until all that they sent is stored. */
  async stop(drainMs: number): Promise<void> {
    const { clock } = this.#options;
    const sockets = [...this.#sockets];
    const startedMs = clock.monotonicMs();
    for (const [at, socket] of sockets.entries()) {
      const leftMs = startedMs + (drainMs * at) / sockets.length - clock.monotonicMs();
      if (leftMs > 1) await clock.sleep(leftMs);
      socket.run(socket.connection.end("server_stop"));
    }
    while (!this.#publisher.isIdle && clock.monotonicMs() < startedMs + drainMs) await clock.sleep(10);
    this.#stopping.abort();
  }

  login(socket: DeviceSocket, connect: ConnectPacket): void {
    this.#unfinished.remove(socket, socket.address);
    this.#logins
      .run(socket.address, () => this.#decideAndAdmit(socket, connect))
      .catch((error: unknown) => {
        this.#options.log.error({ err: error }, "a login could not be decided");
        socket.run(socket.connection.refuse(reasonCodes.serverUnavailable, "try again"));
      });
  }

  async #decideAndAdmit(socket: DeviceSocket, connect: ConnectPacket): Promise<void> {
    // It may have left while it waited.
    if (socket.connection.state !== "deciding") return;
    const userName = connect.userName ?? "";
    const clientId = connect.clientId === "" ? assignedClientId(userName) : connect.clientId;
    const password = connect.password?.toString() ?? "";
    const answer = await this.#decideWithin({ userName, clientId, password, address: socket.address });
    if (socket.connection.state !== "deciding") return;
    if ("code" in answer) {
      socket.run(socket.connection.refuse(answer.code, answer.reason));
      return;
    }
    const { deviceId } = answer;
    const { session, isPresent, former } = this.#sessions.find(clientId, connect.clean);
    former?.run(former.connection.end("taken_over"));
    this.#sessions.attach(session, deviceId, socket);
    this.#admitted.set(socket, { deviceId, session, rate: this.#rates.of(deviceId) });
    this.#addToDevice(deviceId, socket);
    // Who knows of the connection can reach it.
    await this.#options.bus.flush();
    const topics = deviceTopicsOf(deviceId);
    socket.run(socket.connection.admit({ deviceId, topics, session, isPresent }));
    socket.resumeReading();
  }

  async #decideWithin(attempt: Parameters<DecideLogin>[0]): Promise<LoginAnswer> {
    const { clock, decide } = this.#options;
    const late = Promise.withResolvers<LoginAnswer>();
    const unavailable: LoginAnswer = { code: reasonCodes.serverUnavailable, reason: "try again" };
    const cancel = clock.schedule(loginMs, () => late.resolve(unavailable));
    try {
      return await Promise.race([decide(attempt), late.promise]);
    } finally {
      cancel();
    }
  }

  publish(socket: DeviceSocket, publication: Publication): void {
    const admitted = this.#admitted.get(socket);
    if (admitted === undefined) return;
    const { deviceId, session, rate } = admitted;
    const { topic, payload, qos } = publication;
    const nowMs = this.#options.clock.monotonicMs();
    if (qos === 0 && rate.holdMs(nowMs) > 0) {
      this.dropCounts.rate++;
      return;
    }
    rate.count(topic.length + payload.length, nowMs);
    const holdMs = rate.holdMs(nowMs);
    if (holdMs > 0) socket.hold(holdMs);
    this.#publisher.publish(deviceId, publication, false, this.#options.clock.now().getTime(), {
      stored: () => {
        const current = qos === 2 ? (this.#sessions.socketOf(session) ?? socket) : socket;
        current.run(current.connection.stored(publication));
        current.resumeReading();
      },
    });
    this.#deliverHere(deviceId, messageOf(publication, session.clientId, nowMs));
  }

  publishWill(socket: DeviceSocket, publication: Publication, delayMs: number): void {
    const admitted = this.#admitted.get(socket);
    if (admitted === undefined) return;
    const { deviceId, session } = admitted;
    const { clock } = this.#options;
    this.#sessions.delayWill(session, delayMs, () => {
      const receipt = { stored: () => {} };
      this.#publisher.publish(deviceId, publication, true, clock.now().getTime(), receipt);
      this.#deliverHere(deviceId, messageOf(publication, session.clientId, clock.monotonicMs()));
    });
  }

  sendRetained(_socket: DeviceSocket, _subscriptions: readonly GrantedSubscription[]): void {
    // Deltas and retained messages are not read yet.
  }

  report(socket: DeviceSocket, refusal: SessionRefusal): void {
    this.#options.onRefused(this.#about(socket), refusal);
  }

  dropped(why: "expired" | "too_large"): void {
    this.dropCounts[why]++;
  }

  closed(socket: DeviceSocket, reason: EndReason, detail: string | null): void {
    this.#unfinished.remove(socket, socket.address);
    this.#sockets.delete(socket);
    const admitted = this.#admitted.get(socket);
    this.#options.onClosed(this.#about(socket), reason, detail);
    if (admitted === undefined) return;
    this.#admitted.delete(socket);
    const device = this.#devices.get(admitted.deviceId);
    device?.sockets.delete(socket);
    if (device?.sockets.size === 0) {
      device.unsubscribe();
      this.#devices.delete(admitted.deviceId);
    }
    if (this.#sessions.socketOf(admitted.session) === socket) this.#sessions.detach(admitted.session);
  }

  #about(socket: DeviceSocket): ConnectionReport {
    const { deviceId = null, session = null } = this.#admitted.get(socket) ?? {};
    return { deviceId, clientId: session?.clientId ?? null, address: socket.address };
  }

  #addToDevice(deviceId: string, socket: DeviceSocket): void {
    const device = this.#devices.get(deviceId);
    if (device !== undefined) {
      device.sockets.add(socket);
      return;
    }
    const unsubscribe = takeMessagesFor(this.#options.bus, deviceId, (message) =>
      this.#deliverHere(deviceId, this.#received(message)),
    );
    this.#devices.set(deviceId, { sockets: new Set([socket]), unsubscribe });
  }

  /** Whether a connection here has a subscription that selects the message. */
  #deliverHere(deviceId: string, message: MessageForDevice): boolean {
    let isDelivered = false;
    for (const socket of this.#devices.get(deviceId)?.sockets ?? []) {
      const { isMatched, effects } = socket.connection.deliver(message);
      isDelivered ||= isMatched;
      socket.run(effects);
    }
    return isDelivered;
  }

  #received({ topic, payload, qos, retain = false, ...about }: MessageToDevice): MessageForDevice {
    const { clock } = this.#options;
    const leftMs = about.expires_at === undefined ? null : about.expires_at - clock.now().getTime();
    return {
      topic,
      payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
      qos,
      retain,
      properties: noProperties,
      expiresAtMs: leftMs === null ? null : clock.monotonicMs() + leftMs,
      publisher: about.publisher ?? null,
    };
  }

  #tickLater(): void {
    this.#options.clock.schedule(tickMs, () => {
      if (this.#stopping.signal.aborted) return;
      const nowMs = this.#options.clock.monotonicMs();
      for (const socket of this.#sockets)
        if (socket.connection.dueAtMs <= nowMs) socket.run(socket.connection.tick());
      this.#tickLater();
    });
  }
}

/** A client id that belongs to the device, so that it may come back with it. */
function assignedClientId(userName: string): string {
  const device = DeviceId.safeParse(userName.split("?", 1)[0]);
  return `${device.success ? device.data : ""}:${randomBytes(11).toString("hex")}`;
}

function messageOf(
  { topic, payload, qos, retain, properties }: Publication,
  publisher: string,
  nowMs: number,
): MessageForDevice {
  const { messageExpiryInterval, ...passedOn } = properties;
  const expiresAtMs = messageExpiryInterval === undefined ? null : nowMs + messageExpiryInterval * 1_000;
  return {
    topic,
    payload,
    qos,
    retain,
    properties: properties === noProperties ? noProperties : passedOn,
    expiresAtMs,
    publisher,
  };
}
