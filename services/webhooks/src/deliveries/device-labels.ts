import { type devices as contract, deviceEvents } from "@devmesh/contracts/devices";
import { isJsonObject } from "@devmesh/contracts/model/json";
import { labelsOf } from "@devmesh/contracts/model/labels";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { setNewest } from "@devmesh/service-kit/set-newest";

/** How long labels are used without asking again, and of how many devices; in milliseconds. */
const ttlMs = 5_000;
const maxKnown = 10_000;
const callMs = 5_000;

/** The labels of a device; none where there is no such device. Rejects when `devices` does not answer. */
export type ReadLabels = (deviceId: string) => Promise<readonly string[]>;

export function createLabelReader(
  devices: Pick<Client<typeof contract>, "readDevice">,
  clock: Clock,
): ReadLabels {
  const known = new Map<string, { readonly labels: Promise<readonly string[]>; readonly untilMs: number }>();

  async function read(id: string): Promise<readonly string[]> {
    using call = createCallContext({ timeoutMs: callMs, clock });
    try {
      const { device } = await devices.readDevice({ id, principal: { kind: "master" } }, call);
      return labelsOfDevice(device);
    } catch (error) {
      known.delete(id);
      if (isReason(error, "device_not_found")) return [];
      throw error;
    }
  }

  return (id) => {
    const found = known.get(id);
    if (found !== undefined && found.untilMs > clock.monotonicMs()) return found.labels;
    const labels = read(id);
    setNewest(known, id, { labels, untilMs: clock.monotonicMs() + ttlMs }, maxKnown);
    return labels;
  };
}

/** The labels of a device as an API answer or an event has it. */
export function labelsOfDevice(device: unknown): readonly string[] {
  const { shadow } = device as { readonly shadow?: { readonly tags?: unknown } };
  const tags = shadow?.tags;
  return isJsonObject(tags) ? labelsOf(tags) : [];
}

/** The labels that a deleted device had, of the event; null for one of a release that did not write them. */
export function labelsOfDeleted(payload: Uint8Array): readonly string[] | null {
  const event = JSON.parse(new TextDecoder().decode(payload));
  return deviceEvents.events.deleted.schema.parse(event).labels ?? null;
}
