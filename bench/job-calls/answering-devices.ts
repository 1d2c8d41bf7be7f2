import { readFileSync } from "node:fs";
import { connectDevice } from "@devmesh/simulator/device-connection";
import { reportReady } from "../child.ts";
import { type Credentials, numbers } from "../mesh-tenant.ts";

/** Devices that stay connected and answer each call at once. */
const { MQTT_URL: url = "", DEVICES = "" } = process.env;
const devices = JSON.parse(readFileSync(DEVICES, "utf8")) as Credentials[];
/** Logins that wait for their answer at a time. */
const atATime = 50;

async function answerCalls({ id, token }: Credentials): Promise<void> {
  const device = await connectDevice({ url, id, token }, (topic, payload) => {
    if (topic !== `${id}/rpc`) return;
    const { id: call, src } = JSON.parse(payload.toString("utf8"));
    device.publish(`${src}/rpc`, JSON.stringify({ id: call, result: 1 }));
  });
  await device.subscribeAsync(`${id}/rpc`);
}

const next = numbers(devices.length);
const work = async () => {
  for (const nth of next) await answerCalls(devices[nth] as Credentials);
};
await Promise.all(Array.from({ length: atATime }, work));
reportReady();
