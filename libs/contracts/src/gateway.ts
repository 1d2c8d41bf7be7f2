import { z } from "zod";
import { defineEvents, defineLiveEvent } from "./contract.ts";

/** How long `records_wanted` holds, in milliseconds. A gateway repeats it well before. */
export const recordsWantedMs = 15_000;

/** Events of the gateways. */
export const gatewayEvents = defineEvents({
  service: "gateway",
  events: {
    /** A client subscribes to stored records: `data` publishes them for the next {@link recordsWantedMs}. */
    records_wanted: defineLiveEvent(z.object({}), () => "all"),
  },
});
