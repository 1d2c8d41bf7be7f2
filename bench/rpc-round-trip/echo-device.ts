import { connectDevice } from "@devmesh/simulator/device-connection";
import { reportReady } from "../child.ts";

/** A device that answers each call with its parameters. */
const id = process.env.BENCH_DEVICE_ID ?? "";
const client = await connectDevice(
  { url: process.env.BENCH_MQTT_URL ?? "", id, token: process.env.BENCH_DEVICE_TOKEN ?? "" },
  (topic, payload) => {
    if (topic !== `${id}/rpc`) return;
    const { id: call, src, params } = JSON.parse(payload.toString("utf8"));
    client.publish(`${src}/rpc`, JSON.stringify({ id: call, result: params }));
  },
);
await client.subscribeAsync(`${id}/rpc`);
reportReady();
