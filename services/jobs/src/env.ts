import { ServiceEnv, wholeNumber } from "@devmesh/service-kit/process/env";
import { z } from "zod";

/** The environment of the service `jobs`. */
export const JobsEnv = ServiceEnv.extend({
  /** `sqlite:<path>` or `mongodb://<hosts>/<database>`. */
  STORE_URL: z.string().min(1),
  /** How many devices are called at a time. */
  JOBS_IN_FLIGHT: wholeNumber(500, 1, 10_000),
  /** Days for which executions are kept after their end. */
  JOBS_RETENTION_DAYS: wholeNumber(30, 1, 36_500),
  /** `true`: cancels all that waits, since a restored store does not know what devices have done since. */
  JOBS_HOLD: z
    .enum(["true", "false"])
    .default("false")
    .transform((text) => text === "true"),
});
export type JobsEnv = z.infer<typeof JobsEnv>;
