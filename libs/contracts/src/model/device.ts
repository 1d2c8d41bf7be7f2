import { z } from "zod";
import { Acl, defaultAcl } from "./acl.ts";
import { DeviceId } from "./device-id.ts";
import { LabelChanges } from "./labels.ts";
import { Shadow, ShadowPatch, shadowExample } from "./shadow.ts";
import { Timestamp } from "./time.ts";

/** What a device is called by people; need not be unique. */
const DeviceName = z
  .string()
  .max(256)
  .nullable()
  .describe("What people call the device; need not be unique. Null for none.");

const deltaMetadata =
  "Whether its delta has `metadata`; without it, the delta fits into a small buffer of the device.";

const example = {
  id: "pump-1",
  name: "Boiler pump",
  acl: defaultAcl,
  online: true,
  last_seen: "2026-01-31T12:00:00.000Z",
  created_at: "2026-01-01T08:00:00.000Z",
  delta_metadata: true,
  shadow: shadowExample,
};

const secrets = {
  token: "dt_4fT9wXq2LmZ8sVb1NcR6yKp3HdGj7uAe",
  public_key: "pk_9sVb1NcR6yKp3HdGj7uAe4fT9wXq2LmZ",
};

/** A device as a master key sees it. Its secrets are not part of it. */
export const Device = z
  .object({
    id: DeviceId,
    name: DeviceName,
    acl: Acl.describe("What the device's public key may do."),
    online: z.boolean().describe("Whether at least one MQTT connection of it is open."),
    last_seen: Timestamp.nullable().describe(
      "When it last connected or was last known connected; null before the first time.",
    ),
    created_at: Timestamp.describe("When it was created."),
    delta_metadata: z.boolean().default(true).describe(deltaMetadata),
    shadow: Shadow.describe("Its stored state."),
  })
  .meta({ id: "Device", description: "A device as a master key sees it, without secrets.", example });
export type Device = z.infer<typeof Device>;

/** A device in a list. */
export const DeviceListItem = Device.extend({
  problems: z
    .array(z.string())
    .optional()
    .describe(
      "What is wrong between it and the mesh, as reasons of its diagnostics of the last 24 hours, or their names where they have none; absent where nothing is.",
    ),
}).meta({
  id: "DeviceListItem",
  description: "A device in a list, with its problems.",
  example: { ...example, problems: ["wrong_password"] },
});
export type DeviceListItem = z.infer<typeof DeviceListItem>;

/** Orders of a list of devices: by creation, or by a member; `-` is the reverse. */
export const DeviceListOrder = z.enum(["asc", "desc", "version", "-version", "last_seen", "-last_seen"]);
export type DeviceListOrder = z.infer<typeof DeviceListOrder>;

/** The two secrets of a device: its MQTT password and the key its holder uses. */
export const DeviceCredentials = z
  .object({
    token: z.string().describe("MQTT password; no API key."),
    public_key: z.string().describe("API key of its holder, bound by the ACL of the device."),
  })
  .meta({ id: "DeviceCredentials", description: "The two secrets of a device.", example: secrets });
export type DeviceCredentials = z.infer<typeof DeviceCredentials>;

/** The answer of `POST /devices`, the only device object that holds secrets. */
export const CreatedDevice = Device.extend(DeviceCredentials.shape).meta({
  id: "CreatedDevice",
  description: "A device that was just created, with its secrets.",
  example: {
    ...example,
    online: false,
    last_seen: null,
    shadow: {
      state: { desired: {}, reported: { online: false } },
      metadata: { desired: {}, reported: {} },
      tags: shadowExample.tags,
      version: 1,
      timestamp: Date.parse(example.created_at),
    },
    ...secrets,
  },
});

/** The answer to a rotation of the MQTT password. */
export const RotatedToken = DeviceCredentials.pick({ token: true }).meta({
  id: "RotatedToken",
  description: "The new MQTT password.",
  example: { token: secrets.token },
});

/** The answer to a rotation of the public key. */
export const RotatedPublicKey = DeviceCredentials.pick({ public_key: true }).meta({
  id: "RotatedPublicKey",
  description: "The new public key.",
  example: { public_key: secrets.public_key },
});

/** The body of `POST /devices`. */
export const DeviceInput = z
  .strictObject({
    id: DeviceId.optional().describe("Its id, for good; generated if left out."),
    name: DeviceName.optional(),
    acl: Acl.optional().describe("What its public key may do; a default one if left out."),
    delta_metadata: z
      .boolean()
      .optional()
      .describe(`${deltaMetadata.slice(0, -1)}. It has, if left out.`),
    shadow: ShadowPatch.optional().describe("Its first state; its `version` can only be 0."),
  })
  .meta({
    id: "DeviceInput",
    description: "A device to create; all members may be left out.",
    example: { id: "pump-1", name: "Boiler pump", shadow: { tags: { labels: ["boiler"] } } },
  });

/** The body of `POST /devices/:id`; `acl` replaces the old one whole. */
export const DevicePatch = z
  .strictObject({
    name: DeviceName.optional(),
    acl: Acl.optional().describe("Replaces the old one whole."),
    delta_metadata: z.boolean().optional().describe(deltaMetadata),
    shadow: ShadowPatch.optional().describe("Merged into the shadow."),
    labels: LabelChanges.optional().describe("Applied to `tags.labels` after `shadow`."),
  })
  .meta({
    id: "DevicePatch",
    description: "Changes of a device; what is left out stays.",
    example: { name: "Boiler pump", shadow: { state: { desired: { on: true } }, version: 8 } },
  });
export type DevicePatch = z.infer<typeof DevicePatch>;
