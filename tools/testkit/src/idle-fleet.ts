import { connect } from "node:net";
import { generate } from "mqtt-packet";
import { connectPacket } from "./connect-packet.ts";

/** Logins that wait for their answer at a time. */
const atATime = 50;
/** Below the keep-alive of the CONNECT packet. */
const pingEveryMs = 40_000;

/** Connects devices that only ping, without MQTT.js, which takes too much memory for thousands. */
export async function connectIdleFleet(
  mqttUrl: string,
  devices: readonly { readonly id: string; readonly token: string }[],
): Promise<AsyncDisposable> {
  const { port } = new URL(mqttUrl);
  const ping = generate({ cmd: "pingreq" });
  const ends: (() => void)[] = [];
  const logIn = ({ id, token }: (typeof devices)[number]) =>
    new Promise<void>((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port: Number(port) });
      socket.once("data", (connack) => {
        if (connack[3] !== 0) return reject(new Error(`the broker refused ${id}`));
        socket.resume();
        const pinging = setInterval(() => socket.write(ping), pingEveryMs);
        ends.push(() => {
          clearInterval(pinging);
          socket.destroy();
        });
        resolve();
      });
      socket.on("error", reject);
      socket.on("close", () => reject(new Error(`the broker disconnected ${id}`)));
      socket.write(connectPacket(id, token, id));
    });
  const waiting = devices.values();
  const work = async () => {
    for (const device of waiting) await logIn(device);
  };
  await Promise.all(Array.from({ length: atATime }, work));
  return {
    async [Symbol.asyncDispose]() {
      for (const end of ends) end();
    },
  };
}
