import { ServiceEnv } from "@devmesh/service-kit/env";
import { z } from "zod";

/** The environment of the service `devices`. */
export const DevicesEnv = ServiceEnv.extend({
  /** Where devices are kept: `sqlite:<path>` or `mongodb://<hosts>/<database>`. */
  STORE_URL: z.string().min(1),
});
export type DevicesEnv = z.infer<typeof DevicesEnv>;
