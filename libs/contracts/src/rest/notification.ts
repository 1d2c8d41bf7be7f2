import { z } from "zod";
import { devices } from "../devices.ts";
import { DeviceId } from "../model/device-id.ts";
import { Notification } from "../model/notification.ts";
import { defineRoutes, get, queryInteger } from "./route.ts";

const tag = "Notification stream";

const description = `By WebSocket (RFC 6455; each text message is one frame), or as \`text/event-stream\` for a request whose
\`Accept\` names it (each event's \`data\` is one frame, its \`id\` the \`seq\`). What is refused is answered before either begins.

The stream beats every 20 s, by ping or comment. It ends when the key ends, when the client reads too slowly (WebSocket code
1013), and when the gateway stops (1012); then connect again with \`after\`.`;

const flag = (text: string) =>
  z
    .enum(["0", "1"])
    .transform((value) => value === "1")
    .optional()
    .meta({ type: "string", enum: ["0", "1"], default: "0", description: text });

const query = z.object({
  after: queryInteger({
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    description:
      "The last `seq` received: later frames that are still kept (one hour) are sent first; a `gap` frame replaces those that are not. The header `Last-Event-ID` means the same.",
  }),
  data: flag(
    "`1`: also `data` frames, with records as they are stored; best effort, `GET /data?after=` finds all.",
  ),
});

const answers = {
  101: { description: "The connection is a WebSocket." },
  200: { description: "Frames, for as long as it takes.", other: { "text/event-stream": Notification } },
} as const;

/** Events of the mesh as they happen (api.md, Notification stream). */
export const notificationStream = defineRoutes({
  followNotifications: {
    ...get("/notify"),
    tag,
    summary: "Subscribe to what happens to all devices",
    description,
    auth: ["master", "session"],
    query: query
      .extend({
        device: DeviceId.optional().meta({
          description:
            "Only frames of this device, and `gap`; while there is none of that id, only refused logins. Not together with `account=1`.",
        }),
        account: flag("`1`: also `keys` and `customers` frames."),
      })
      .refine(({ device, account }) => device === undefined || account !== true, {
        path: ["account"],
        error: "must not be 1 together with `device`, which keys and customers do not belong to",
      }),
    answers,
    calls: [],
    stream: true,
  },
  followOwnNotifications: {
    ...get("/m/device/notify"),
    tag,
    summary: "Subscribe to what happens to the device, cut by its ACL",
    description: `${description}

Only what the ACL lets the key see: \`online\` and \`offline\` where it reads \`/state/reported/online\`, \`updated\` with the device
as \`GET /m/device\` gives it, \`rpc.in.\` of functions it may call, \`data\` that one of its queries finds, and \`deleted\`.`,
    auth: ["public_key"],
    query,
    answers,
    calls: [{ contract: devices, methods: ["readDevice", "readAccess"] }],
    stream: true,
  },
});
