import { ServiceEnv } from "@devmesh/service-kit/process/env";
import type { z } from "zod";

/** The environment of the MQTT front. */
export const MqttEnv = ServiceEnv.extend({});
export type MqttEnv = z.infer<typeof MqttEnv>;
