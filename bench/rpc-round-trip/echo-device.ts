import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { reportReady } from "../child.ts";

/** A device that answers each call with its parameters. */
const device = await connectMqttDevice({
  url: process.env.BENCH_MQTT_URL ?? "",
  id: process.env.BENCH_DEVICE_ID ?? "",
  token: process.env.BENCH_DEVICE_TOKEN ?? "",
});
device.client.on("message", (topic, payload) => {
  if (topic !== `${device.id}/rpc`) return;
  const { id, src, params } = JSON.parse(payload.toString("utf8"));
  device.client.publish(`${src}/rpc`, JSON.stringify({ id, result: params }));
});
await device.subscribe(`${device.id}/rpc`);
reportReady();
