import type { StoredDevice } from "../store/device-store.ts";

/**
 * The strong entity tag of a device: another one after each change of name, ACL or shadow, and for each later device
 * of its id.
 */
export function etagOf({ position, revision }: Pick<StoredDevice, "position" | "revision">): string {
  return `"${position}.${revision}"`;
}

/**
 * Whether the value of an `If-Match` names `etag` (RFC 9110, 13.1.1): `*` names any, a list names each of its
 * members, a weak tag never matches. A malformed value matches nothing.
 */
export function matchesEtag(ifMatch: string, etag: string): boolean {
  if (ifMatch.trim() === "*") return true;
  // Our own tags hold no comma, so cutting at commas can lose foreign tags only.
  return ifMatch.split(",").some((tag) => tag.trim() === etag);
}
