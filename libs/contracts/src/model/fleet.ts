import { z } from "zod";
import { isJsonObject, type JsonObject } from "./json.ts";
import { Timestamp } from "./time.ts";

/** Where devices report their version: Mongoose OS and mDash firmware below `ota` or `sys`, others at the top. */
const versionPlaces = [
  ["ota", "fw_version"],
  ["ota", "version"],
  ["sys", "fw_version"],
  ["fw_version"],
  ["version"],
  ["app", "version"],
] as const;

/** Characters of a version that count: a device may report any text. */
const maxVersion = 64;

/** A version that a device reports: a text without blanks around it, or a number as JSON writes it; null for none. */
export function versionText(value: unknown): string | null {
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? value.trim() : null;
}

/** The version of the firmware in the reported state of a device; null for none. */
export function firmwareVersion(reported: JsonObject): string | null {
  for (const place of versionPlaces) {
    let value: unknown = reported;
    for (const member of place)
      value = isJsonObject(value) && Object.hasOwn(value, member) ? value[member] : undefined;
    const version = versionText(value);
    if (version !== null) return version.slice(0, maxVersion).toWellFormed();
  }
  return null;
}

/** Hours without a connection after which devices are counted as silent. */
export const silentHours = [1, 6, 24, 72, 168] as const;

const devices = (which: string) => z.int().min(0).describe(`Number of devices ${which}.`);

/** All devices in numbers. */
export const FleetSummary = z
  .object({
    counted_at: Timestamp.describe("When the devices were counted."),
    devices: devices("in all"),
    online: devices("that are connected"),
    firmware: z
      .array(
        z
          .object({
            version: z.string().describe("As devices report it, such as in `ota.fw_version`."),
            devices: devices("with this version"),
          })
          .meta({ id: "VersionCount", description: "How many devices have a version." }),
      )
      .describe("The most frequent versions, at most 6."),
    other_firmware: devices("with another version"),
    no_firmware: devices("that report no version"),
    labels: z
      .array(
        z
          .object({
            label: z.string().describe("A label of devices."),
            devices: devices("with this label"),
          })
          .meta({ id: "LabelCount", description: "How many devices have a label." }),
      )
      .describe("The most frequent labels, at most 20. A device counts for each of its labels."),
    other_labels: devices("with each of the other labels, added up"),
    silent: z
      .array(
        z
          .object({
            hours: z.int().min(1).describe("Number of hours without a connection."),
            devices: devices("that are offline for longer, or were created before and never connected"),
          })
          .meta({ id: "SilentCount", description: "How many devices are silent for so long." }),
      )
      .describe("Devices that are silent, for each of some times."),
  })
  .meta({
    id: "FleetSummary",
    description: "All devices in numbers.",
    example: {
      counted_at: "2026-11-21T17:00:00.000Z",
      devices: 200,
      online: 187,
      firmware: [{ version: "1.4.2", devices: 187 }],
      other_firmware: 0,
      no_firmware: 13,
      labels: [{ label: "beta", devices: 20 }],
      other_labels: 0,
      silent: [{ hours: 24, devices: 13 }],
    },
  });
export type FleetSummary = z.infer<typeof FleetSummary>;
