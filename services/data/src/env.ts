import { DevicesAccountEnv } from "@devmesh/device-broker/devices-account";
import { byteSize, ServiceEnv, wholeNumber } from "@devmesh/service-kit/process/env";
import { parseStoreUrl } from "@devmesh/store/store-url";
import { z } from "zod";

const StoreUrl = z.string().transform((url, context) => {
  try {
    return parseStoreUrl(url);
  } catch (error) {
    context.addIssue({ code: "custom", message: error instanceof Error ? error.message : "cannot be read" });
    return z.NEVER;
  }
});

/** The data service's environment. */
export const DataEnv = ServiceEnv.extend({
  ...DevicesAccountEnv.shape,
  STORE_URL: StoreUrl,
  /** Days that a record is kept. */
  DATA_RETENTION_DAYS: z.coerce.number().positive().max(36_500).default(30),
  /** Bytes of the store, indexes included; beyond it the device that stores most loses its oldest records. */
  DATA_MAX_BYTES: byteSize.default(10 * 1024 ** 3),
  /** Days that numbers are kept by the hour; by five minutes they are kept as long as records. */
  SERIES_RETENTION_DAYS: z.coerce.number().positive().max(36_500).default(730),
  /** Bytes of numbers by the hour and by five minutes; beyond it the device that has most loses its oldest hours. */
  SERIES_MAX_BYTES: byteSize.default(5 * 1024 ** 3),
  /** Messages of one batch. The broker delivers 2,000 that are not acknowledged: those of the next one, too. */
  INGEST_BATCH: wholeNumber(1_000, 1, 1_000),
  /** The longest wait for a batch to fill, in milliseconds. */
  INGEST_WAIT_MS: wholeNumber(50, 1, 10_000),
});
export type DataEnv = z.infer<typeof DataEnv>;
