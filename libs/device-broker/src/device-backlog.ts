import type { Bus } from "@devmesh/service-kit/bus";
import { streamManager } from "@devmesh/service-kit/streams";
import { type deviceConsumers, mqttStream } from "./broker-subjects.ts";

/** Number of messages that a consumer has not acknowledged yet. Rejects while it cannot be read. */
export async function deviceBacklog(bus: Bus, durable: keyof typeof deviceConsumers): Promise<number> {
  const manager = await streamManager(bus);
  const info = await manager.consumers.info(mqttStream, durable);
  return info.num_pending + info.num_ack_pending;
}
