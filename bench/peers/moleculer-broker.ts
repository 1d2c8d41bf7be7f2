import { ServiceBroker } from "moleculer";
import { environment } from "./environment.ts";

/** A broker over NATS, without metrics and tracing. */
export function createBroker(nodeID: string): ServiceBroker {
  return new ServiceBroker({
    nodeID,
    transporter: { type: "NATS", options: { servers: [environment.natsUrl] } },
    logger: {
      type: "Pino",
      options: { level: "info", pino: { options: { base: { service: nodeID } } } },
    },
    requestTimeout: 5_000,
    metrics: false,
    tracing: false,
  });
}
