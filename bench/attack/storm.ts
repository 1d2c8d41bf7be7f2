import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { generate, type Packet } from "mqtt-packet";
import { reportReady } from "../child.ts";

/**
 * Sends what is no message, as fast as the broker reads it, over many connections: PINGREQ, or SUBSCRIBE and
 * UNSUBSCRIBE at a QoS. It reports how many packets the sockets took.
 */
const { BENCH_MQTT_URL, BENCH_DEVICE_ID: id = "", BENCH_DEVICE_TOKEN = "", BENCH_STORM } = process.env;
const [qos, connections, forMs] = ["QOS", "CONNECTIONS", "MS"].map((name) =>
  Number(process.env[`BENCH_${name}`]),
) as [number, number, number];
const { port } = new URL(BENCH_MQTT_URL ?? "");
const atOnce = 100;
const end = performance.now() + forMs;
let [packets, logins, refused] = [0, 0, 0];

const packetsOf = (n: number): Packet[] =>
  BENCH_STORM === "ping"
    ? [{ cmd: "pingreq" }, { cmd: "pingreq" }]
    : [
        {
          cmd: "subscribe",
          messageId: 2 * n + 1,
          subscriptions: [{ topic: `${id}/event/${n}`, qos: qos === 1 ? 1 : 0 }],
        },
        { cmd: "unsubscribe", messageId: 2 * n + 2, unsubscriptions: [`${id}/event/${n}`] },
      ];
const piece = Buffer.concat(
  Array.from({ length: atOnce }, (_, n) => packetsOf(n).map((packet) => generate(packet))).flat(),
);

/** Resolves when the broker closes the connection or the time is over. */
function sendOver(clientId: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port: Number(port) });
    const send = () => {
      while (performance.now() < end) {
        packets += 2 * atOnce;
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
      socket.resume();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve());
    setTimeout(() => socket.destroy(), Math.max(0, end - performance.now())).unref();
    socket.write(connectPacket(id, BENCH_DEVICE_TOKEN, clientId));
  });
}

await Promise.all(
  Array.from({ length: connections }, async (_, nth) => {
    while (performance.now() < end) {
      await sendOver(`${id}:${nth}`);
      await sleep(200);
    }
  }),
);
reportReady(`${packets} packets sent, ${logins} logins, ${refused} refused`);
