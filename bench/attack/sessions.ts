import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { reportReady } from "../child.ts";

/** Leaves persistent sessions with as many filters at QoS 1 as are granted, for a while, and reports their number. */
const id = process.env.BENCH_DEVICE_ID ?? "";
const maxSessions = 150;
const filters = 31;
const atATime = 3;
const end = performance.now() + Number(process.env.BENCH_MS);
let [next, sessions, refused, granted] = [0, 0, 0, 0];

async function leaveSession(): Promise<void> {
  const device = await connectMqttDevice(
    {
      url: process.env.BENCH_MQTT_URL ?? "",
      id,
      token: process.env.BENCH_DEVICE_TOKEN ?? "",
      clientId: `${id}:${next++}`,
    },
    { clean: false },
  );
  sessions++;
  for (let n = 0; n < filters && performance.now() < end; n++)
    if ((await device.subscribe(`${id}/event/${n}`, 1)) === 1) granted++;
  await device.leave();
}

await Promise.all(
  Array.from({ length: atATime }, async () => {
    while (performance.now() < end && next < maxSessions) {
      await leaveSession().catch(() => {
        refused++;
      });
    }
  }),
);
reportReady(`${sessions} sessions with ${granted} filters, ${refused} refused or closed`);
process.disconnect();
