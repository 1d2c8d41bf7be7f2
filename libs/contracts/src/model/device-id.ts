import { z } from "zod";

/** First level of the topics of records (mqtt.ts). */
export const recordRoot = "db";

/** A device's id: one level of an MQTT topic and one token of a NATS subject (api.md, Device). */
export const DeviceId = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
    "must be 1 to 64 of A-Z a-z 0-9 _ - and begin with a letter or digit",
  )
  .refine(
    (id) => id.toLowerCase() !== recordRoot,
    `must not be \`${recordRoot}\`, the first level of the data topics`,
  )
  .meta({ description: "Id of the device.", example: "pump-1" });
export type DeviceId = z.infer<typeof DeviceId>;
