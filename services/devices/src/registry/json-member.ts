import type { Json, JsonObject } from "@devmesh/contracts/model/json";

/** An object's own member; never what every object inherits, such as `toString`. */
export function ownMember(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Whether an object has no member at all. */
export function isEmptyObject(object: JsonObject): boolean {
  for (const _name in object) return false;
  return true;
}
