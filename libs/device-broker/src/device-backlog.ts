import type { Bus } from "@devmesh/service-kit/bus";
import { streamManager } from "@devmesh/service-kit/streams";
import { type deviceConsumers, mqttStream } from "./broker-subjects.ts";

/**
 * How many messages the broker keeps for a consumer of what devices published: not handed over, or not acknowledged
 * yet. Rejects while the consumer is not there or cannot be asked.
 */
export async function deviceBacklog(bus: Bus, durable: keyof typeof deviceConsumers): Promise<number> {
  const manager = await streamManager(bus);
  const info = await manager.consumers.info(mqttStream, durable);
  return info.num_pending + info.num_ack_pending;
}
