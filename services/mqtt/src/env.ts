import { ServiceEnv } from "@devmesh/service-kit/process/env";

/** The environment of the MQTT front. */
export const MqttEnv = ServiceEnv.extend({});
