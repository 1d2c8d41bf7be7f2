import { z } from "zod";
import { Timestamp } from "./time.ts";

/** How long the course of the mesh is kept, in minutes: a day. */
export const historyMinutes = 24 * 60;

const rate = (what: string) =>
  z.number().min(0).nullable().describe(`Mean number of ${what} a second; null where it is not known.`);

/** The mesh in one minute. */
export const MeshMinute = z
  .object({
    at: Timestamp.describe("End of the minute."),
    devices_online: z.int().min(0).nullable().describe("Devices with an MQTT connection; null if not known."),
    records: rate("stored records"),
    logins: rate("accepted MQTT logins"),
    logins_refused: rate("refused MQTT logins"),
    device_calls: rate("calls of functions of devices"),
    waiting: z
      .int()
      .min(0)
      .nullable()
      .describe(
        "Messages of devices that are acknowledged and not handled yet; of a service that does not answer, those of its last answer. Null if not known.",
      ),
  })
  .meta({
    id: "MeshMinute",
    description: "The mesh in one minute.",
    example: {
      at: "2026-01-31T12:00:00.000Z",
      devices_online: 187,
      records: 94.5,
      logins: 0.2,
      logins_refused: 0,
      device_calls: 1.5,
      waiting: 0,
    },
  });
export type MeshMinute = z.infer<typeof MeshMinute>;

/** The last day, the oldest minute first. Minutes in which no gateway ran are absent. */
export const MeshHistory = z.array(MeshMinute).max(historyMinutes);
export type MeshHistory = z.infer<typeof MeshHistory>;
