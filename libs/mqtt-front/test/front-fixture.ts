import type { BatchKind } from "@devmesh/contracts/mqtt";
import { type BatchedMessage, batchStream, decodeDeviceBatch } from "@devmesh/device-broker/device-batch";
import { ensureBatchStream } from "@devmesh/device-broker/device-front";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { systemClock } from "@devmesh/service-kit/clock";
import { streamManager } from "@devmesh/service-kit/connection/streams";
import { createLogger } from "@devmesh/service-kit/logger";
import { startNatsServer, type TestNatsServer } from "@devmesh/testkit/nats-server";
import mqtt, { type IClientOptions, type MqttClient } from "mqtt";
import { MqttFront } from "../src/front/mqtt-front.ts";
import {
  type MqttListeners,
  type MqttListenersOptions,
  openMqttListeners,
} from "../src/listener/mqtt-listeners.ts";
import type { DecideLogin } from "../src/login/decide-login.ts";

/** Bytes of the stream of a test. */
const streamBytes = 64 * 1024 * 1024;

/** The password of each device of a test. */
export const password = "right";

/** A front before a real nats-server. */
export interface TestFront extends AsyncDisposable {
  readonly nats: TestNatsServer;
  readonly bus: Bus;
  readonly front: MqttFront;
  readonly listeners: MqttListeners;
  /** `NAME REASON TOPIC` of what devices were refused. */
  readonly refusals: string[];
  /** `DEVICE REASON DETAIL` of connections that ended. */
  readonly ends: string[];
  /** All messages of a kind that are stored, in order; each is one of a batch. */
  stored(kind: BatchKind): Promise<StoredMessage[]>;
  /** A client that is connected as a device. */
  connect(deviceId: string, options?: IClientOptions): Promise<MqttClient>;
}

/** A message in the stream, with the number of its batch. */
interface StoredMessage extends BatchedMessage {
  readonly batch: number;
  readonly text: string;
}

/** Decides by a fixed password. */
const decide: DecideLogin = async ({ userName, password: given }) =>
  given === password ? { deviceId: userName } : { code: 0x86, reason: "wrong password" };

/** Starts all of it. */
export async function startFront(
  change: Partial<MqttListenersOptions> & {
    readonly decide?: DecideLogin;
    readonly messagesPerSecond?: number;
  } = {},
): Promise<TestFront> {
  const nats = await startNatsServer({ jetstream: true });
  const log = createLogger({ service: "mqtt", level: "silent", replica: "f" });
  const bus = await connectBus({ url: nats.url, name: "mqtt", replicaId: "f", log });
  await ensureBatchStream(bus, 0, streamBytes);
  const refusals: string[] = [];
  const ends: string[] = [];
  const front = new MqttFront({
    bus,
    decide: change.decide ?? decide,
    log,
    clock: systemClock,
    rates: { messages: change.messagesPerSecond ?? 100_000, bytes: 1e9 },
    maxSessionExpiryMs: 3_600_000,
    onRefused: (_, { name, reason, topic }) => refusals.push(`${name} ${reason} ${topic}`),
    onClosed: ({ deviceId }, reason, detail) =>
      ends.push([deviceId, reason, detail].filter(Boolean).join(" ")),
  });
  const listeners = await openMqttListeners({
    host: "127.0.0.1",
    port: 0,
    tls: null,
    webSocketPort: null,
    isProxy: () => false,
    clock: systemClock,
    accept: (stream, address) => front.accept(stream, address),
    onFailed: (address, why, detail) => ends.push(`${address} ${why} ${detail}`),
    ...change,
  });
  const clients: MqttClient[] = [];
  return {
    nats,
    bus,
    front,
    listeners,
    refusals,
    ends,
    async stored(kind) {
      const manager = await streamManager(bus);
      const messages: StoredMessage[] = [];
      const { state } = await manager.streams.info(batchStream(0));
      for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
        const stored = await manager.streams.getMessage(batchStream(0), { seq });
        if (stored?.subject !== `ingest.0.${kind}`) continue;
        const batch = decodeDeviceBatch(stored.data);
        for (const message of batch.messages)
          messages.push({ ...message, batch: batch.number, text: Buffer.from(message.payload).toString() });
      }
      return messages;
    },
    async connect(deviceId, options = {}) {
      const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${listeners.port}`, {
        clientId: deviceId,
        username: deviceId,
        password,
        reconnectPeriod: 0,
        ...options,
      });
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.end(true);
      await listeners.stop();
      await front.stop(0);
      await bus.close();
      await nats.stop();
    },
  };
}
