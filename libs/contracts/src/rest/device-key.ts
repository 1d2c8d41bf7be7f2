import { z } from "zod";
import { devices } from "../devices.ts";
import { DeviceId } from "../model/device-id.ts";
import { JsonObject, JsonValue } from "../model/json.ts";
import { defineRoutes, get, post } from "./route.ts";

const tag = "Device key";
const path = "/device";

/** The device reduced to the `app` sections of its shadow. */
const AppDevice = z
  .object({
    id: DeviceId,
    shadow: z.object({
      state: z.object({ desired: z.object({ app: JsonValue }), reported: z.object({ app: JsonValue }) }),
    }),
  })
  .meta({ id: "AppDevice" });

/** What a device key may do (api.md, Device key). Its `GET /data` is in stored-data.ts. */
export const deviceKey = defineRoutes({
  readAppDevice: {
    ...get(path),
    tag,
    summary: "Read the `app` sections of the device",
    auth: ["device_key"],
    answers: { 200: { description: "The device, reduced.", json: AppDevice } },
    calls: [{ contract: devices, methods: ["readDevice"] }],
  },
  patchAppDevice: {
    ...post(path),
    tag,
    summary: "Change the `app` sections of the shadow",
    description: "A body with any other member is refused whole.",
    auth: ["device_key"],
    body: { schema: JsonObject, optional: false },
    answers: { 200: { description: "The device as it is now, reduced.", json: AppDevice } },
    calls: [{ contract: devices, methods: ["patchDevice"] }],
  },
});
