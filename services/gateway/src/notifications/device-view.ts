import type { devices } from "@devmesh/contracts/devices";
import type { Acl } from "@devmesh/contracts/model/acl";
import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { topicMatcher } from "@devmesh/contracts/model/topic-match";
import type { Principal } from "@devmesh/contracts/principal";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import { isReason } from "@devmesh/service-kit/errors";
import type { Client } from "@devmesh/service-kit/implementation";
import { Frame } from "./frame.ts";
import type { RecentEvent } from "./replay-buffer.ts";
import type { View } from "./view.ts";

/** How a device view asks what its key may see. */
export type DeviceAccess = Pick<Client<typeof devices>, "readDevice" | "readAccess">;

/** How long what the ACL said is believed, in milliseconds; an `updated` event ends it. */
const believedForMs = 5_000;
/** How long one question may take, in milliseconds. */
const askMs = 5_000;

const presencePointer = "/state/reported/online";

/**
 * By how much the clock of a service may be behind that of another, in milliseconds. An id is free again 6 s after
 * its device lost its access at the earliest, so nothing of that one is taken for the new one's.
 */
const clockSkewMs = 2_000;

/** What a key may see of its device. */
interface Access {
  readonly acl: Acl;
  readonly created_at: string;
}

/**
 * One device as the holder of its public key sees it: what the ACL does not cover does not exist, and neither does an
 * earlier device of that id. The owner cuts the device; what cannot be asked for becomes a `gap`.
 */
export function deviceView(
  principal: Extract<Principal, { readonly kind: "public_key" }>,
  devices: DeviceAccess,
  clock: Clock,
): View {
  const id = principal.device_id;
  let believed: { readonly access: Access | null; readonly untilMs: number } | null = null;

  async function readAccess(): Promise<Access | null> {
    if (believed !== null && believed.untilMs > clock.monotonicMs()) return believed.access;
    const askedAtMs = clock.monotonicMs();
    using call = createCallContext({ timeoutMs: askMs, clock });
    const found = await devices.readAccess({ id }, call).catch((error: unknown) => {
      if (isReason(error, "device_not_found")) return null;
      throw error;
    });
    believed = { access: found, untilMs: askedAtMs + believedForMs };
    return found;
  }

  async function readVisible(): Promise<Json | undefined> {
    using call = createCallContext({ timeoutMs: askMs, clock });
    try {
      return (await devices.readDevice({ id, principal }, call)).device;
    } catch (error) {
      if (isReason(error, "device_not_found")) return undefined;
      throw error;
    }
  }

  async function cut(frames: readonly Frame[]): Promise<readonly Frame[]> {
    const last = frames.at(-1);
    if (last === undefined) return [];
    const update = frames.findLast(({ name }) => name === "updated");
    if (update !== undefined) believed = null;
    try {
      const access = await readAccess();
      const visible = update === undefined ? undefined : await readVisible();
      return frames.flatMap((frame) => {
        if (access !== null && isOfEarlierDevice(frame, access)) return [];
        // Of several, the last one tells it all: each would show the device as it is now.
        if (frame.name === "updated")
          return frame === update && visible !== undefined ? [shown(frame, visible)] : [];
        return frame.name === "deleted" || (access !== null && covers(access.acl, frame)) ? [frame] : [];
      });
    } catch {
      return [shown({ ...last, id: null, name: "gap" }, {})];
    }
  }

  return {
    framesOf(events: readonly RecentEvent[]) {
      const frames = events.flatMap((event) => {
        const frame = event.about === id ? event.frame() : null;
        return frame === null || frame.id !== id ? [] : [frame];
      });
      return frames.length === 0 ? [] : cut(frames);
    },
    recordsOf(records) {
      const own = records.filter((record) => record.id === id);
      return own.length === 0 ? [] : cut(own);
    },
  };
}

function shown(
  { seq, id, name, timestamp }: Pick<Frame, "seq" | "id" | "name" | "timestamp">,
  data: Json,
): Frame {
  return new Frame({ seq, id, name, data, timestamp });
}

function isOfEarlierDevice({ timestamp }: Frame, { created_at }: Access): boolean {
  return Date.parse(timestamp) < Date.parse(created_at) - clockSkewMs;
}

/** Whether a frame about the device may be seen; what is not named here is not. */
function covers({ read, rpc, queries }: Acl, { id, name, data }: Frame): boolean {
  if (name === "online" || name === "offline")
    return read.some((pointer) => pointer === presencePointer || presencePointer.startsWith(`${pointer}/`));
  if (name.startsWith("rpc.in.")) return rpc.includes(name.slice("rpc.in.".length));
  if (name !== "data" || !isJsonObject(data) || typeof data.topic !== "string") return false;
  const { topic } = data;
  return Object.values(queries).some((query) => topicMatcher(`db/${id}/${query.topic}`)(topic));
}
