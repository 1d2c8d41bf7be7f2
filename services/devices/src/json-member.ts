import type { Json, JsonObject } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";

/** An object's own member; never what every object inherits, such as `toString`. */
export function ownMember(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Whether an object has no member at all. */
export function isEmptyObject(object: JsonObject): boolean {
  for (const _name in object) return false;
  return true;
}

/** The JSON pointer (RFC 6901) to a member, or an element, of what `pointer` points to. */
export function pointerInto(pointer: string, member: string | number): string {
  return `${pointer}${pointerToken(member)}`;
}
