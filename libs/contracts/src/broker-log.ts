import { defineEvents, defineLiveEvent } from "./contract.ts";
import { DiagnosisReports } from "./model/diagnostics.ts";

/** Events of the reader of nats-server's log. */
export const brokerLogEvents = defineEvents({
  service: "broker-log",
  events: {
    /** What only that log says of devices: topics that they may not use. */
    diagnostics: defineLiveEvent(DiagnosisReports, () => "all"),
  },
});
