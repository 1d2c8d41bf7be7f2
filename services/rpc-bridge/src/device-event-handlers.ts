import { deviceEvents } from "@devmesh/contracts/devices";
import type { Bus } from "@devmesh/service-kit/bus";
import { type ActiveSubscription, subscribe } from "@devmesh/service-kit/events";
import type { DeltaPublisher } from "./shadow/shadow-delta.ts";

/** What the registry's events lead to. */
export interface RegistryNewsOptions {
  readonly bus: Bus;
  /** Ends the calls of a device that has gone, in each replica those it holds. */
  readonly endCalls: (device: { readonly id: string }) => Promise<void>;
  /** Brings deltas up to date, in one replica. */
  readonly deltas: Pick<DeltaPublisher, "welcome" | "refresh">;
}

/** Hears what happens to devices from now on. */
export function hearRegistry({ bus, endCalls, deltas }: RegistryNewsOptions): ActiveSubscription {
  const departures = subscribe(
    bus,
    { events: deviceEvents, names: ["offline", "deleted"] },
    { offline: endCalls, deleted: endCalls },
    { mode: "each" },
  );
  const changes = subscribe(
    bus,
    { events: deviceEvents, names: ["online", "updated", "created"] },
    {
      online: ({ id }) => deltas.welcome(id),
      updated: ({ id }) => deltas.refresh(id),
      created: ({ id }) => deltas.refresh(id),
    },
    { mode: "one" },
  );
  return {
    async stop() {
      await Promise.all([departures.stop(), changes.stop()]);
    },
  };
}
