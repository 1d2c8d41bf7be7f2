import { z } from "zod";
import { data } from "../data.ts";
import { devices } from "../devices.ts";
import { DataRecord, defaultLatestLimit } from "../model/data-record.ts";
import { DeviceId } from "../model/device-id.ts";
import { JsonObject, JsonValue } from "../model/json.ts";
import { defineRoutes, get, post, QueryBoolean } from "./route.ts";

const tag = "Device key";
const path = "/device";

const AppSection = z
  .object({ app: JsonValue.describe("Any JSON; `{}` where there is none.") })
  .meta({ id: "AppSection", description: "What the key sees of a section." });

const AppState = z
  .object({
    desired: AppSection.describe("What the device should be."),
    reported: AppSection.describe("The state that the device reports."),
  })
  .meta({ id: "AppState", description: "What the key sees of the state." });

const AppShadow = z
  .object({ state: AppState.describe("The state, reduced.") })
  .meta({ id: "AppShadow", description: "What the key sees of the shadow." });

/** The device reduced to the `app` sections of its shadow. */
const AppDevice = z
  .object({
    id: DeviceId,
    shadow: AppShadow.describe("The shadow, reduced."),
    latest: z
      .array(DataRecord)
      .optional()
      .describe(
        `With \`latest=true\`: the newest record of each topic, ordered by topic, at most ${defaultLatestLimit}.`,
      ),
  })
  .meta({
    id: "AppDevice",
    description: "The device as its device key sees it: the `app` sections of its shadow.",
    example: {
      id: "pump-1",
      shadow: { state: { desired: { app: { on: true } }, reported: { app: { on: false } } } },
    },
  });

/** What a device key may do (api.md, Device key). Stored records are in stored-data.ts. */
export const deviceKey = defineRoutes({
  readAppDevice: {
    ...get(path),
    tag,
    summary: "Read the `app` sections of the device",
    auth: ["device_key"],
    query: z.object({
      latest: QueryBoolean.optional().meta({
        description: "With the newest record of each topic, as `GET /device/latest` answers them.",
      }),
    }),
    answers: {
      200: {
        description: "The device, reduced.",
        json: AppDevice,
        headers: { Link: 'With `latest=true`: the topics that follow, `rel="next"`, if there are any.' },
      },
    },
    calls: [
      { contract: devices, methods: ["readDevice"] },
      { contract: data, methods: ["readLatest"] },
    ],
  },
  patchAppDevice: {
    ...post(path, "device"),
    tag,
    summary: "Change the `app` sections of the shadow",
    description: "A body with any other member is refused whole.",
    auth: ["device_key"],
    body: {
      schema: JsonObject.meta({
        id: "AppDevicePatch",
        description: "A merge patch (RFC 7396) of the `app` sections of the shadow.",
        example: { shadow: { state: { desired: { app: { on: false } } } } },
      }),
      optional: false,
    },
    answers: { 200: { description: "The device as it is now, reduced.", json: AppDevice } },
    calls: [{ contract: devices, methods: ["patchDevice"] }],
  },
});
