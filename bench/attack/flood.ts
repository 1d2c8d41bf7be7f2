import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { generate } from "mqtt-packet";
import { reportReady } from "../child.ts";

/**
 * Publishes as fast as the broker reads, up to a time and a count, and reconnects when it is closed. It reports how
 * many messages the sockets took.
 */
const { BENCH_MQTT_URL, BENCH_DEVICE_ID = "", BENCH_DEVICE_TOKEN = "", BENCH_TOPIC = "" } = process.env;
const [qos, bytes, connections, forMs] = ["QOS", "BYTES", "CONNECTIONS", "MS"].map((name) =>
  Number(process.env[`BENCH_${name}`]),
) as [number, number, number, number];
const { port } = new URL(BENCH_MQTT_URL ?? "");
const maxMessages = 5_000_000;
const pieceBytes = 64 * 1024;

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

/** Resolves when the broker closes the connection or the time is over. */
function publishOver(clientId: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port: Number(port) });
    const send = () => {
      while (performance.now() < end && messages < maxMessages) {
        messages += atOnce;
        if (!socket.write(piece)) return;
      }
      socket.destroy();
    };
    socket.once("data", (connack) => {
      if (connack[3] !== 0) refused++;
      else {
        logins++;
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
    while (performance.now() < end && messages < maxMessages) {
      await publishOver(`${BENCH_DEVICE_ID}:${nth}`);
      await sleep(200);
    }
  }),
);
reportReady(`${messages} messages sent, ${logins} logins, ${refused} refused`);
