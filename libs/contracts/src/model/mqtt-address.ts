import { z } from "zod";

/** Where devices reach the broker. */
export const MqttAddress = z
  .object({
    host: z
      .string()
      .min(1)
      .nullable()
      .describe("Name or address, an IPv6 one without brackets; null: the host at which the API is reached."),
    port: z.int().min(1).max(65_535).describe("TCP port."),
    tls: z.boolean().describe("Whether the connection is made with TLS."),
  })
  .meta({
    id: "MqttAddress",
    description: "Where devices reach the broker by MQTT 3.1.1.",
    example: { host: "mqtt.example.com", port: 8883, tls: true },
  });
export type MqttAddress = z.infer<typeof MqttAddress>;
