import type { devices } from "@devmesh/contracts/devices";
import type { Json } from "@devmesh/contracts/model/json";
import type { Principal } from "@devmesh/contracts/principal";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { Frame } from "./frame.ts";
import { mayReceive } from "./may-receive.ts";
import type { View } from "./view.ts";

/** What a view asks `devices`. */
export type DeviceReader = Client<typeof devices, "readAccess" | "readDevice">;

/** How long the ACL is cached, in milliseconds; an `updated` event ends it. */
const ttlMs = 5_000;
/** Timeout of one call to `devices`, in milliseconds. */
const callMs = 5_000;
/**
 * Largest clock difference between services, in milliseconds. A deleted id is free again after 6 s at the earliest, so
 * that no frame of the deleted device is taken for one of its successor.
 */
const clockSkewMs = 2_000;

/**
 * Frames about one device as its public key may receive them. `devices` cuts the device to the ACL; where it cannot be
 * asked, the frames become a `gap`. Frames of an earlier device of that id are dropped.
 */
export function deviceView(
  principal: Extract<Principal, { readonly kind: "public_key" }>,
  devices: DeviceReader,
  clock: Clock,
): View {
  const id = principal.device_id;
  type Access = Awaited<ReturnType<typeof devices.readAccess>>;
  let cached: { readonly access: Access | undefined; readonly untilMs: number } | null = null;

  async function readAccess(): Promise<Access | undefined> {
    if (cached !== null && cached.untilMs > clock.monotonicMs()) return cached.access;
    const askedAtMs = clock.monotonicMs();
    using call = createCallContext({ timeoutMs: callMs, clock });
    const access = await unlessNotFound(devices.readAccess({ id }, call));
    cached = { access, untilMs: askedAtMs + ttlMs };
    return access;
  }

  async function readVisible(): Promise<Json | undefined> {
    using call = createCallContext({ timeoutMs: callMs, clock });
    return (await unlessNotFound(devices.readDevice({ id, principal }, call)))?.device;
  }

  async function cut(frames: readonly Frame[]): Promise<readonly Frame[]> {
    const last = frames.at(-1);
    if (last === undefined) return [];
    const update = frames.findLast(({ name }) => name === "updated");
    if (update !== undefined) cached = null;
    try {
      const access = await readAccess();
      const visible = update === undefined ? undefined : await readVisible();
      return frames.flatMap((frame) => {
        const { name, timestamp } = frame;
        if (access && Date.parse(timestamp) < Date.parse(access.created_at) - clockSkewMs) return [];
        if (name !== "updated") return mayReceive(access?.acl, frame) ? [frame] : [];
        // Only the last of several updates goes out: each would show the device as it is now.
        return frame === update && visible !== undefined ? [new Frame({ ...frame, data: visible })] : [];
      });
    } catch {
      return [new Frame({ ...last, id: null, name: "gap", data: {} })];
    }
  }

  return {
    framesOf(events) {
      const own = events.flatMap((event) => {
        const frame = event.about === id ? event.frame() : null;
        return frame?.id === id ? [frame] : [];
      });
      return own.length === 0 ? [] : cut(own);
    },
    recordsOf(records) {
      const own = records.filter((record) => record.id === id);
      return own.length === 0 ? [] : cut(own);
    },
  };
}

function unlessNotFound<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch((error: unknown) => {
    if (isReason(error, "device_not_found")) return undefined;
    throw error;
  });
}
