import { isJsonObject, type Json } from "@devmesh/contracts/model/json";

/** Whether two JSON values mean the same: the order of members is nothing, that of elements counts. */
export function equalJson(one: Json, other: Json): boolean {
  if (one === other) return true;
  if (Array.isArray(one)) {
    if (!Array.isArray(other) || one.length !== other.length) return false;
    return one.every((element, at) => equalJson(element, other[at] as Json));
  }
  if (!isJsonObject(one) || !isJsonObject(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every(
    (name) => Object.hasOwn(other, name) && equalJson(one[name] as Json, other[name] as Json),
  );
}
