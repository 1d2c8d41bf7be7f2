import type { Device } from "@devmesh/contracts/model/device";
import { isJsonObject, type Json, JsonObject } from "@devmesh/contracts/model/json";
import { cutToPointers } from "@devmesh/contracts/model/pointer-tree";
import type { Principal } from "@devmesh/contracts/principal";
import { readableParts } from "../acl/principal-rights.ts";
import type { Presence } from "../presence.ts";
import { describeShadow } from "../shadow/describe-shadow.ts";
import type { StoredDevice } from "../store/device-store.ts";

/** A device as a master key sees it. */
export function describeDevice(device: StoredDevice, presence: Presence): Device {
  const { id, name, acl, created_at, delta_metadata, shadow } = device;
  const online = presence.isOnline(id);
  const seen = seenAt(device, presence);
  return {
    id,
    name,
    acl,
    online,
    last_seen: seen === null ? null : new Date(seen).toISOString(),
    created_at: new Date(created_at).toISOString(),
    delta_metadata,
    shadow: describeShadow(shadow, online),
  };
}

/** When a device was last known to be connected, in Unix milliseconds; null for never. */
export function seenAt({ id, created_at, last_seen }: StoredDevice, presence: Presence): number | null {
  const seen = Math.max(last_seen ?? 0, presence.lastSeen(id) ?? 0);
  // An earlier time belongs to an earlier device of this id.
  return seen < created_at || seen === 0 ? null : seen;
}

/**
 * A device as the principal may see it: all of it for a master key; otherwise `id` and the readable parts of the shadow
 * (api.md, Device public key and the ACL). A device key always gets both sides, with `app: {}` where there is none.
 */
export function describeDeviceFor(
  principal: Principal,
  device: StoredDevice,
  presence: Presence,
): JsonObject {
  const described = JsonObject.parse(describeDevice(device, presence));
  const readable = readableParts(principal, device.acl);
  if (readable === null) return described;
  const shadow = memberObject({ shadow: cutToPointers(described.shadow ?? {}, readable) }, "shadow");
  const state = memberObject(shadow, "state");
  if (principal.kind !== "device_key") return { id: device.id, shadow: { ...shadow, state } };
  const side = (name: string) => ({ app: {}, ...memberObject(state, name) });
  return { id: device.id, shadow: { state: { desired: side("desired"), reported: side("reported") } } };
}

function memberObject(of: { readonly [name: string]: Json | undefined }, name: string): JsonObject {
  const member = of[name];
  return isJsonObject(member) ? member : {};
}
