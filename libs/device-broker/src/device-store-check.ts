import { assertConnected, type Bus } from "@devmesh/service-kit/bus";
import { retry } from "@devmesh/service-kit/retry";
import { z } from "zod";
import { type DeviceConsumer, deviceConsumers, type deviceStoreRequests } from "./broker-subjects.ts";

const StreamInfo = z.object({
  config: z.object({ discard: z.string() }),
  state: z.object({ last_seq: z.int() }),
});
const ConsumerInfo = z.object({ delivered: z.object({ stream_seq: z.int() }) });

/** Timeout of one request, in milliseconds: a stream without a leader does not answer. */
const requestTimeoutMs = 2_000;

/**
 * Resolves when the broker stores what devices publish: `$MQTT_msgs` has its limits, and no durable consumer on it is
 * missing or ahead of it (see `provisionDeviceStream`). Rejects after about `timeoutMs`. `bus` is in account MESH.
 */
export async function awaitDeviceStore(bus: Bus, timeoutMs: number): Promise<void> {
  const until = performance.now() + timeoutMs;
  await retry(() => checkDeviceStore(bus), {
    firstMs: 100,
    longestMs: 500,
    isRetried: () => performance.now() < until,
  });
}

async function checkDeviceStore(bus: Bus): Promise<void> {
  assertConnected(bus);
  const request = async <T>(subject: keyof typeof deviceStoreRequests, reply: z.ZodType<T>) =>
    reply.parse((await bus.request(subject, "", { timeoutMs: requestTimeoutMs })).json());
  const consumers = await Promise.all(
    (Object.keys(deviceConsumers) as DeviceConsumer[]).map((name) =>
      request(`broker.devices.consumer.${name}`, ConsumerInfo),
    ),
  );
  // Asked last: the stream may only have grown since.
  const { config, state } = await request("broker.devices.stream", StreamInfo);
  if (config.discard !== "new") throw new Error("the broker's stream of device messages has no limits yet");
  if (consumers.some(({ delivered }) => delivered.stream_seq > state.last_seq))
    throw new Error("a consumer is ahead of the broker's stream of device messages");
}
