import { ServiceEnv, wholeNumber } from "@devmesh/service-kit/process/env";
import { z } from "zod";

/** The environment of the service `alerts`. */
export const AlertsEnv = ServiceEnv.extend({
  /** `sqlite:<path>` or `mongodb://<hosts>/<database>`. */
  STORE_URL: z.string().min(1),
  /** Where people reach the mesh, for links in messages to chats. */
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** The most mails that alerts queue in an hour. */
  ALERTS_MAILS_PER_HOUR: wholeNumber(200, 1, 10_000),
});
export type AlertsEnv = z.infer<typeof AlertsEnv>;
