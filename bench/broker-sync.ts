/**
 * QoS 1 messages a second by `BROKER_SYNC`: every second and before each acknowledgement, against nats-server's
 * default of two minutes. `node bench/broker-sync.ts [seconds a round]`
 */
import { eventually } from "@devmesh/testkit/eventually";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { connectNats } from "@devmesh/testkit/nats-connection";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { inTurns, report } from "./measure.ts";

const roundMs = 1000 * Number(process.argv[2] ?? 2);
const rounds = 3;
const connections = 8;
const inFlight = 25;

async function acknowledgedPerSecond(sync: string) {
  await using server = await startNatsServer({
    config: ({ port, mqttPort, storeDir }) => `
      server_name: bench
      listen: "127.0.0.1:${port}"
      jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "${sync}" }
      mqtt { listen: "127.0.0.1:${mqttPort}" }
      accounts { DEVICES { jetstream: enabled, users: [ { user: bench, password: bench } ] } }`,
  });
  const devices = await Promise.all(
    Array.from({ length: connections }, (_, number) =>
      connectMqttDevice({ url: server.mqttUrl, id: "bench", token: "bench", clientId: `bench-${number}` }),
    ),
  );
  await using admin = await connectNats({ port: server.port, user: "bench", password: "bench" });
  // The broker stores a message only for a consumer.
  await admin.requestJson("$JS.API.CONSUMER.DURABLE.CREATE.$MQTT_msgs.bench", {
    stream_name: "$MQTT_msgs",
    config: { durable_name: "bench", ack_policy: "explicit", deliver_policy: "all" },
  });
  let acknowledged = 0;
  let waiting = connections * inFlight;
  const begin = performance.now();
  const publish = (nth: number) => {
    if (performance.now() - begin > roundMs) {
      waiting--;
      return;
    }
    devices[nth % connections]?.client.publish("kept/n", Buffer.alloc(200), { qos: 1 }, (error) => {
      if (error) throw error;
      acknowledged++;
      publish(nth);
    });
  };
  for (let nth = 0; nth < connections * inFlight; nth++) publish(nth);
  await eventually(() => waiting === 0);
  const seconds = (performance.now() - begin) / 1000;
  await Promise.all(devices.map((device) => device.leave()));
  return { "PUBACK/s": acknowledged / seconds };
}

const measured = await inTurns(rounds, {
  always: () => acknowledgedPerSecond("always"),
  "1s": () => acknowledgedPerSecond("1s"),
  "2m": () => acknowledgedPerSecond("2m"),
});
console.log(
  `median (min–max) of ${rounds} rounds of ${roundMs / 1000} s, ${connections} connections, ${inFlight} each in flight`,
);
report(measured, { ours: "1s", peer: "2m" });
report(measured, { ours: "always", peer: "2m" });
