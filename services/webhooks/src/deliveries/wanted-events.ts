import { eventsOfFrames } from "@devmesh/contracts/event-frames";
import type { WantedConsumer, WantedEvent } from "@devmesh/service-kit/events/event-outbox";
import type { StoredWebhook } from "../store/webhook-store.ts";
import { deviceOf } from "./message.ts";

/** The consumer of a webhook's events. Frames of one function alone are chosen later, as their subject has no name. */
export function wantedConsumer(webhook: StoredWebhook): WantedConsumer {
  const { id, run, edition, events, devices } = webhook;
  const wanted = new Map<string, WantedEvent>();
  for (const name of events) {
    const isOfDevice = deviceOf({ id: "device", name }) !== null;
    for (const { service, event } of eventsOfFrames(name)) {
      if (devices === null || !isOfDevice) {
        wanted.set(`${service}.${event}`, { service, event });
        continue;
      }
      for (const about of devices) wanted.set(`${service}.${event}.${about}`, { service, event, about });
    }
  }
  return { id, run, revision: edition, events: [...wanted.values()] };
}
