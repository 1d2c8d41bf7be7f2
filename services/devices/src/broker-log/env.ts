import { ServiceEnv } from "@devmesh/service-kit/process/env";
import { z } from "zod";

/** The environment of the reader of nats-server's log. */
export const BrokerLogEnv = ServiceEnv.extend({
  /** `log_file` of the nats-server beside it. */
  BROKER_LOG: z.string().min(1).default("/var/log/nats/nats-server.log"),
});
