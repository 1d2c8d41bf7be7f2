import { z } from "zod";

/** Where devices reach the broker. */
export const MqttAddress = z.object({
  /** Name or address, an IPv6 one without brackets; null: the host at which the API is reached. */
  host: z.string().min(1).nullable(),
  port: z.int().min(1).max(65_535),
  tls: z.boolean(),
});
export type MqttAddress = z.infer<typeof MqttAddress>;
