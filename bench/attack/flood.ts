import { execFileSync } from "node:child_process";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { generate, type Packet } from "mqtt-packet";
import { reportReady } from "../child.ts";

/**
 * Sends packets as fast as the broker reads, up to a time and a count of messages, over connections that it ends after
 * BENCH_LIFE_MS (0: never), and reconnects when one is closed. It reports how many packets the sockets took.
 */
// The attacker has its own machine: here it gets only what processor time is left over, and delays nobody who wakes up.
execFileSync("chrt", ["--idle", "--all-tasks", "--pid", "0", String(process.pid)]);

const { BENCH_MQTT_URL, BENCH_DEVICE_ID: id = "", BENCH_DEVICE_TOKEN = "", BENCH_TOPIC = "" } = process.env;
const [qos, bytes, connections, lifeMs, forMs] = ["QOS", "BYTES", "CONNECTIONS", "LIFE_MS", "MS"].map(
  (name) => Number(process.env[`BENCH_${name}`] ?? 0),
) as [0 | 1, number, number, number, number];
const { port } = new URL(BENCH_MQTT_URL ?? "");
const pieceBytes = 64 * 1024;
/** As many client ids as may be new at once. */
const clientIds = lifeMs === 0 ? connections : 300;
const pauseMs = lifeMs === 0 ? 200 : 10;

/** The nth packets of a piece: a message on BENCH_TOPIC, else what is no message. */
const kinds: Record<string, (n: number) => Packet[]> = {
  publish: (n) => {
    const payload = Buffer.alloc(bytes, "0");
    return [
      { cmd: "publish", topic: BENCH_TOPIC, payload, qos, messageId: n + 1, dup: false, retain: false },
    ];
  },
  subscribe: (n) => [
    { cmd: "subscribe", messageId: 2 * n + 1, subscriptions: [{ topic: `${id}/event/${n}`, qos }] },
    { cmd: "unsubscribe", messageId: 2 * n + 2, unsubscriptions: [`${id}/event/${n}`] },
  ],
  ping: () => [{ cmd: "pingreq" }, { cmd: "pingreq" }],
};
const kind = process.env.BENCH_PACKETS ?? "publish";
const times =
  kind === "publish" ? Math.max(1, Math.floor(pieceBytes / (bytes + BENCH_TOPIC.length + 8))) : 100;
const packets = Array.from({ length: times }, (_, n) => kinds[kind]?.(n) ?? []).flat();
const piece = Buffer.concat(packets.map((packet) => generate(packet)));
const most = kind === "publish" ? 5_000_000 : Number.POSITIVE_INFINITY;
const end = performance.now() + forMs;
let [sent, logins, refused] = [0, 0, 0];

/** Resolves when the connection is closed, by the broker or after its time. */
function sendOver(clientId: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port: Number(port) });
    const send = () => {
      while (performance.now() < end && sent < most && !socket.destroyed) {
        sent += packets.length;
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
    socket.write(connectPacket(id, BENCH_DEVICE_TOKEN, clientId));
  });
}

await Promise.all(
  Array.from({ length: connections }, async (_, nth) => {
    for (let n = nth; performance.now() < end && sent < most; n += connections) {
      await sendOver(`${id}:${n % clientIds}`);
      await sleep(pauseMs);
    }
  }),
);
reportReady(`${sent} packets sent, ${logins} logins, ${refused} refused`);
