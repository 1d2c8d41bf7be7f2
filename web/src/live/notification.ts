import { z } from "zod";

/** One frame of the notification stream (api.md, Notification stream). */
export const Notification = z.object({
  /** Ascending; where a later connection goes on. */
  seq: z.number(),
  /** Of the device, key or customer that it is about; empty where it is about none. */
  id: z.string().default(""),
  /** `online`, `offline`, `created`, `deleted`, `updated`, `data`, `keys`, `customers`, `gap`, `rpc.in.<func>` or `rpc.out.<name>`. */
  name: z.string(),
  data: z.unknown(),
  timestamp: z.string(),
});
export type Notification = z.infer<typeof Notification>;
