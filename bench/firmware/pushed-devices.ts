import { setTimeout as sleep } from "node:timers/promises";
import { connectDevice } from "@devmesh/simulator/device-connection";
import { reportReady } from "../child.ts";

/**
 * Devices that take files by `OTA.Begin`, `OTA.Write` and `OTA.End` and answer each call after a time. One that has
 * the whole file is away for a moment and then has the next version. The parent asks with a message, and is sent the
 * milliseconds from the first to the last piece of each update since.
 */
const devices: { readonly id: string; readonly token: string }[] = JSON.parse(process.env.DEVICES ?? "[]");
const url = process.env.MQTT_URL ?? "";
const answerMs = Number(process.env.ANSWER_MS);
const awayMs = 3_000;

let times: number[] = [];

async function run(id: string, token: string): Promise<never> {
  let version = 0;
  let size = 0;
  let received = 0;
  let beganMs = 0;

  const functions: Readonly<Record<string, (params: never) => unknown>> = {
    "Sys.GetInfo": () => ({ fw_version: String(version) }),
    "OTA.Begin"(params: { readonly size: number }) {
      size = params.size;
      received = 0;
      beganMs = performance.now();
      return true;
    },
    "OTA.Write"({ data }: { readonly data: string }) {
      received += Buffer.byteLength(data, "base64");
      if (received === size) times.push(performance.now() - beganMs);
      return true;
    },
    "OTA.End": () => true,
    "OTA.Commit": () => true,
  };

  for (;;) {
    const booted = Promise.withResolvers<void>();
    const answer = async (payload: Buffer) => {
      const { id: call, src, method, params } = JSON.parse(payload.toString("utf8"));
      await sleep(answerMs);
      device.publish(
        `${src}/rpc`,
        JSON.stringify({ id: call, result: functions[method]?.(params as never) }),
      );
      if (method !== "OTA.End") return;
      version++;
      await sleep(100);
      booted.resolve();
    };
    const device = await connectDevice({ url, id, token }, (topic, payload) => {
      if (topic === `${id}/rpc`) void answer(payload);
    });
    await device.subscribeAsync(`${id}/rpc`);
    await booted.promise;
    await device.endAsync();
    await sleep(awayMs);
  }
}

for (const { id, token } of devices) void run(id, token);
process.on("message", () => {
  process.send?.(times);
  times = [];
});
reportReady();
