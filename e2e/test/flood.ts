/**
 * A process that publishes on one topic as fast as it can, up to a count or until the broker closes the connection:
 * `node flood.ts MQTT_URL DEVICE_ID TOPIC BYTES QOS COUNT`, the token in `FLOOD_TOKEN`. It sends its parent the result.
 */
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";

const [url = "", id = "", topic = "", bytes = "", qos = "", count = ""] = process.argv.slice(2);
const atOnce = 500;

process.once("disconnect", () => process.exit(0));
const device = await connectMqttDevice({
  url,
  id,
  token: process.env.FLOOD_TOKEN ?? "",
  clientId: `${id}:flood`,
});
const closed = device.closed().then(() => "closed" as const);
const payload = "x".repeat(Number(bytes));
const level = Number(qos) === 1 ? 1 : 0;
let sent = 0;
let outcome: "closed" | "sent" = "sent";
while (sent < Number(count) && outcome === "sent") {
  const batch = Array.from({ length: atOnce }, () => device.publish(topic, payload, level));
  sent += atOnce;
  outcome = await Promise.race([Promise.allSettled(batch).then(() => "sent" as const), closed]);
  if (!device.client.connected) outcome = "closed";
}
process.send?.({ outcome, sent });
