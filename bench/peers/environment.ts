/** Where the peers find what they share, from the environment that the benchmark gives them. */
export const environment = {
  natsUrl: process.env.NATS_URL ?? "",
  storePath: process.env.BENCH_STORE ?? "",
  mqttUrl: process.env.BENCH_MQTT_URL ?? "",
  mqttUser: process.env.BENCH_MQTT_USER ?? "",
  mqttPassword: process.env.BENCH_MQTT_PASSWORD ?? "",
};
