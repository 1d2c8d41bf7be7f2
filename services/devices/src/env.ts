import { ServiceEnv, wholeNumber } from "@devmesh/service-kit/process/env";
import { z } from "zod";

const count = (fallback: number) => wholeNumber(fallback, 1, 1e12);

/** The environment of the service `devices`. */
export const DevicesEnv = ServiceEnv.extend({
  /** Where devices are kept: `sqlite:<path>` or `mongodb://<hosts>/<database>`. */
  STORE_URL: z.string().min(1),
  /** Messages a second that one device may publish over all its connections; ten times as many at once. */
  DEVICE_RATE_MESSAGES: count(2_000),
  /** Bytes a second that one device may publish over all its connections; ten times as many at once. */
  DEVICE_RATE_BYTES: count(1024 * 1024),
});
export type DevicesEnv = z.infer<typeof DevicesEnv>;
