import { z } from "zod";
import { Acl } from "./acl.ts";
import { DeviceId } from "./device-id.ts";
import { Shadow, ShadowPatch } from "./shadow.ts";
import { Timestamp } from "./time.ts";

/** What a device is called by people; need not be unique. */
export const DeviceName = z.string().max(256).nullable();

/** A device as a master key sees it. Its secrets are not part of it. */
export const Device = z
  .object({
    id: DeviceId,
    name: DeviceName,
    acl: Acl,
    /** Whether at least one MQTT connection of it is open. */
    online: z.boolean(),
    /** When it last connected or was last known connected; null before the first time. */
    last_seen: Timestamp.nullable(),
    created_at: Timestamp,
    shadow: Shadow,
  })
  .meta({ id: "Device" });
export type Device = z.infer<typeof Device>;

/** The two secrets of a device: its MQTT password and the key its holder uses. */
export const DeviceCredentials = z
  .object({ token: z.string(), public_key: z.string() })
  .meta({ id: "DeviceCredentials" });
export type DeviceCredentials = z.infer<typeof DeviceCredentials>;

/** The answer of `POST /devices`, the only device object that holds secrets. */
export const CreatedDevice = Device.extend(DeviceCredentials.shape).meta({ id: "CreatedDevice" });

/** The body of `POST /devices`. */
export const NewDevice = z
  .strictObject({
    id: DeviceId.optional(),
    name: DeviceName.optional(),
    acl: Acl.optional(),
    shadow: ShadowPatch.optional(),
  })
  .meta({ id: "NewDevice" });

/** The body of `POST /devices/:id`; `acl` replaces the old one whole. */
export const DevicePatch = z
  .strictObject({ name: DeviceName.optional(), acl: Acl.optional(), shadow: ShadowPatch.optional() })
  .meta({ id: "DevicePatch" });
export type DevicePatch = z.infer<typeof DevicePatch>;
