import type { StoredDevice } from "../store/device-store.ts";

/** The strong entity tag of a device: it changes with name, ACL, shadow, and a later device of the same id. */
export function etagOf({ position, revision }: Pick<StoredDevice, "position" | "revision">): string {
  return `"${position}.${revision}"`;
}

/**
 * Whether the value of an `If-Match` names `etag` (RFC 9110, 13.1.1): `*` names any, a list names each of its
 * members, a weak tag never matches. A malformed value matches nothing.
 */
export function matchesEtag(ifMatch: string, etag: string): boolean {
  if (ifMatch.trim() === "*") return true;
  // Our own tags contain no comma.
  return ifMatch.split(",").some((tag) => tag.trim() === etag);
}
