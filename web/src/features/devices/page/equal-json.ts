import { isJsonObject, type Json } from "@devmesh/contracts/model/json";

/** Whether two JSON values are the same; the order of members means nothing. */
export function equalJson(one: Json, other: Json): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, at) => equalJson(item, other[at] as Json));
  }
  if (!isJsonObject(one) || !isJsonObject(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && equalJson(one[name] as Json, other[name] as Json))
  );
}
