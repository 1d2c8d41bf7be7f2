import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { generate } from "mqtt-packet";
import { reportReady } from "../child.ts";
import { median, p99 } from "../measure.ts";
import type { PublishReport, RecordPublisher } from "./publisher.ts";

/**
 * Publishes at QoS 1 from some devices, each with a window of unacknowledged ones. Of the acknowledgements, which come
 * in order, it only counts bytes, to leave the processors to the mesh.
 */
const { BENCH_MQTT_PORT, BENCH_PUBLISHERS = "", BENCH_PUBLISHED, BENCH_MESSAGES, BENCH_WINDOW } = process.env;
const devices = JSON.parse(readFileSync(BENCH_PUBLISHERS, "utf8")) as RecordPublisher[];
const window = Number(BENCH_WINDOW);
const each = Math.ceil(Number(BENCH_MESSAGES) / devices.length);
/** Bytes of a PUBACK. */
const ackBytes = 4;
const loginBatchSize = 20;

const isShadow = BENCH_PUBLISHED === "shadow";

function payloadOf(nth: number): string {
  const values = {
    temperature: (20 + Math.sin(nth) * 10).toFixed(3),
    humidity: 40 + ((nth * 7919) % 4000) / 100,
    seq: nth,
    state: ["ok", "warn", "idle"][nth % 3],
    mac: ((nth * 2654435761) >>> 0).toString(16),
  };
  return JSON.stringify(isShadow ? { state: { reported: values } } : values);
}

async function logIn({ id, token, clientId }: RecordPublisher): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port: Number(BENCH_MQTT_PORT), noDelay: true });
  socket.write(connectPacket(id, token, clientId));
  const [connack] = (await once(socket, "data")) as [Buffer];
  if (connack[3] !== 0) throw new Error(`the broker refused ${id}`);
  return socket;
}

/** Resolves with the last acknowledgement, with the milliseconds that each message waited for its own. */
function publish(socket: Socket, packets: readonly Buffer[]): Promise<Float64Array> {
  return new Promise((resolve, reject) => {
    /** When it was sent, until it is acknowledged. */
    const waited = new Float64Array(packets.length);
    let sent = 0;
    let acked = 0;
    let ackedBytes = 0;
    const send = () => {
      const until = Math.min(packets.length, acked + window);
      if (until > sent) socket.write(Buffer.concat(packets.slice(sent, until)));
      waited.fill(performance.now(), sent, until);
      sent = Math.max(sent, until);
    };
    socket.on("data", (acks) => {
      ackedBytes += acks.length;
      const now = performance.now();
      for (; acked < Math.floor(ackedBytes / ackBytes); acked++) waited[acked] = now - (waited[acked] ?? 0);
      if (acked === packets.length) resolve(waited);
      else send();
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the broker closed the connection")));
    send();
  });
}

const sockets: Socket[] = [];
for (let first = 0; first < devices.length; first += loginBatchSize)
  sockets.push(...(await Promise.all(devices.slice(first, first + loginBatchSize).map(logIn))));
const packets = devices.map(({ clientId }, at) =>
  Array.from({ length: each }, (_, nth) =>
    generate({
      cmd: "publish",
      topic: isShadow ? `${clientId}/shadow/update` : `db/${clientId}/telemetry/${nth % 3}`,
      payload: payloadOf(at * each + nth),
      qos: 1,
      messageId: (nth % 65_535) + 1,
      dup: false,
      retain: false,
    }),
  ),
);
const began = Date.now();
const waits = await Promise.all(sockets.map((socket, at) => publish(socket, packets[at] ?? [])));
const ended = Date.now();
const all = waits.flatMap((waited) => [...waited]);
reportReady({
  began,
  ended,
  messages: each * devices.length,
  p50: median(all),
  p99: p99(all),
} satisfies PublishReport);
