import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { generate } from "mqtt-packet";
import { reportReady } from "../child.ts";

/**
 * Publishes as fast as the broker reads, up to a time and a count, over connections that it ends after BENCH_LIFE_MS
 * (0: never), and reconnects when one is closed. It reports how many messages the sockets took.
 */
const { BENCH_MQTT_URL, BENCH_DEVICE_ID = "", BENCH_DEVICE_TOKEN = "", BENCH_TOPIC = "" } = process.env;
const [qos, bytes, connections, lifeMs, forMs] = ["QOS", "BYTES", "CONNECTIONS", "LIFE_MS", "MS"].map(
  (name) => Number(process.env[`BENCH_${name}`]),
) as [number, number, number, number, number];
const { port } = new URL(BENCH_MQTT_URL ?? "");
const maxMessages = 5_000_000;
const pieceBytes = 64 * 1024;
/** As many client ids as may be new at once. */
const clientIds = lifeMs === 0 ? connections : 300;
const pauseMs = lifeMs === 0 ? 200 : 10;

const atOnce = Math.max(1, Math.floor(pieceBytes / (bytes + BENCH_TOPIC.length + 8)));
const piece = Buffer.concat(
  Array.from({ length: atOnce }, (_, n) =>
    generate({
      cmd: "publish",
      topic: BENCH_TOPIC,
      payload: Buffer.alloc(bytes, "0"),
      qos: qos === 1 ? 1 : 0,
      messageId: n + 1,
      dup: false,
      retain: false,
    }),
  ),
);
const end = performance.now() + forMs;
let [messages, logins, refused] = [0, 0, 0];

/** Resolves when the connection is closed, by the broker or after its time. */
function publishOver(clientId: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port: Number(port) });
    const send = () => {
      while (performance.now() < end && messages < maxMessages && !socket.destroyed) {
        messages += atOnce;
        if (!socket.write(piece)) return;
      }
      socket.destroy();
    };
    socket.once("data", (connack) => {
      if (connack[3] !== 0) refused++;
      else {
        logins++;
        // What the kernel has taken already reaches the broker.
        if (lifeMs > 0) setTimeout(() => socket.destroy(), lifeMs);
        socket.on("drain", send);
        send();
      }
      // Reads acknowledgements, so that the broker's socket never fills.
      socket.resume();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve());
    setTimeout(() => socket.destroy(), Math.max(0, end - performance.now())).unref();
    socket.write(connectPacket(BENCH_DEVICE_ID, BENCH_DEVICE_TOKEN, clientId));
  });
}

await Promise.all(
  Array.from({ length: connections }, async (_, nth) => {
    for (let n = nth; performance.now() < end && messages < maxMessages; n += connections) {
      await publishOver(`${BENCH_DEVICE_ID}:${n % clientIds}`);
      await sleep(pauseMs);
    }
  }),
);
reportReady(`${messages} messages sent, ${logins} logins, ${refused} refused`);
