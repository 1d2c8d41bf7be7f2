import { z } from "zod";
import { DeviceId } from "./model/device-id.ts";

/** The caller, as `keys.verify` found it. The owner of a resource decides by it. */
export const Principal = z.discriminatedUnion("kind", [
  /** A master key: root access to the REST API. */
  z.object({ kind: z.literal("master") }),
  /** A device key of an end customer: one device, its `app` sections. */
  z.object({ kind: z.literal("device_key"), device_id: DeviceId }),
  /** A device public key: one device, as far as its ACL allows. */
  z.object({ kind: z.literal("public_key"), device_id: DeviceId }),
  /** A customer key: the customer object alone. */
  z.object({ kind: z.literal("customer"), customer_id: z.string() }),
  /** The device itself, over its MQTT connection. */
  z.object({ kind: z.literal("device"), device_id: DeviceId }),
]);
export type Principal = z.infer<typeof Principal>;
export type PrincipalKind = Principal["kind"];
