import { z } from "zod";
import { defineEvents, defineLiveEvent } from "./contract.ts";

/** How long `records_wanted` holds, in milliseconds; who goes on wanting says it again well before. */
export const recordsWantedMs = 15_000;

/** What gateways say to the services behind them. */
export const gatewayEvents = defineEvents({
  service: "gateway",
  events: {
    /** Somebody listens for stored records: `data` tells them for the next {@link recordsWantedMs}. */
    records_wanted: defineLiveEvent(z.object({}), () => "all"),
  },
});
