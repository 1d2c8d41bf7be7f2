import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Semaphore } from "@devmesh/service-kit/semaphore";
import { connectPacket } from "@devmesh/testkit/connect-packet";
import { generate, parser } from "mqtt-packet";
import { reportReady } from "../child.ts";
import type { Credentials } from "../mesh-tenant.ts";

/**
 * Devices that stay connected: each subscribes to its deltas, publishes a record a minute at QoS 1, and comes back
 * after a pause of 1 to 10 s when its connection ends. Answers each message of the parent with {@link FleetState}.
 */
const { BENCH_MQTT_PORT, BENCH_DEVICES = "" } = process.env;
const devices = JSON.parse(readFileSync(BENCH_DEVICES, "utf8")) as Credentials[];
const publishEveryMs = 60_000;
/** Logins that wait for their answer at a time. */
const atATime = 50;

/** What the devices of a process have seen so far. */
export interface FleetState {
  readonly connected: number;
  /** Logins that the broker refused, or did not answer. */
  readonly refused: number;
  readonly deltas: number;
  readonly acknowledged: number;
}

const state = { connected: 0, refused: 0, deltas: 0, acknowledged: 0 };
const logins = new Semaphore({ permits: atATime });

/** Holds one connection until it ends; `settled` is called once, when the login has an answer or has failed. */
function stayConnected({ id, token }: Credentials, settled: () => void): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port: Number(BENCH_MQTT_PORT), noDelay: true });
    const packets = parser({ protocolVersion: 4 });
    let isIn = false;
    let publishing: NodeJS.Timeout | undefined;
    const publishRecord = () => {
      const payload = JSON.stringify({ temperature: 21.5, at: Date.now() });
      const record = {
        topic: `db/${id}/telemetry`,
        payload,
        qos: 1,
        messageId: 2,
        dup: false,
        retain: false,
      } as const;
      socket.write(generate({ cmd: "publish", ...record }));
    };
    packets.on("packet", (packet) => {
      if (packet.cmd === "puback") state.acknowledged++;
      if (packet.cmd === "publish") state.deltas++;
      if (packet.cmd !== "connack" || packet.returnCode !== 0) return;
      isIn = true;
      state.connected++;
      settled();
      const subscriptions = [{ topic: `${id}/shadow/delta`, qos: 0 as const }];
      socket.write(generate({ cmd: "subscribe", messageId: 1, subscriptions }));
      publishing = setTimeout(() => {
        publishRecord();
        publishing = setInterval(publishRecord, publishEveryMs);
      }, Math.random() * publishEveryMs);
    });
    socket.on("data", (piece) => packets.parse(piece));
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearTimeout(publishing);
      if (isIn) state.connected--;
      else {
        state.refused++;
        settled();
      }
      resolve();
    });
    socket.write(connectPacket(id, token, id));
  });
}

async function comeBackAlways(device: Credentials): Promise<never> {
  for (;;) {
    const login = await logins.acquire();
    await stayConnected(device, () => login?.[Symbol.dispose]());
    await sleep(1_000 + Math.random() * 9_000);
  }
}

for (const device of devices) void comeBackAlways(device);
process.on("message", () => process.send?.(state));
reportReady();
