import type { Presence } from "../presence.ts";
import type { StoredDevice } from "../store/device-store.ts";
import { seenAt } from "./device-view.ts";

/**
 * The strong entity tag of a device: it changes with all that a GET shows but `last_seen` while it is connected, and
 * with a later device of the same id. What follows `~` is of its presence, on which no write depends.
 */
export function etagOf(device: StoredDevice, presence: Presence): string {
  const { id, position, revision } = device;
  const state = presence.isOnline(id) ? "on" : (seenAt(device, presence)?.toString(36) ?? "never");
  return `"${position}.${revision}~${state}"`;
}

/**
 * Whether the value of an `If-Match` names the tag of a device as stored, whatever its presence (RFC 9110, 13.1.1): `*`
 * names any, a list names each of its members, a weak tag never matches. A malformed value matches nothing.
 */
export function matchesEtag(
  ifMatch: string,
  { position, revision }: Pick<StoredDevice, "position" | "revision">,
): boolean {
  if (ifMatch.trim() === "*") return true;
  const stored = `"${position}.${revision}`;
  // Our own tags contain no comma.
  return ifMatch.split(",").some((tag) => tag.trim().replace(/(~[^"~]*)?"$/, "") === stored);
}
