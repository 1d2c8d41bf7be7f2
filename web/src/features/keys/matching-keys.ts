import type { ApiKey } from "@devmesh/contracts/model/api-key";

/** The keys that a filter finds by a part of name, device, id or the key itself; the case of letters means nothing. */
export function matchingKeys(keys: readonly ApiKey[], filter: string): readonly ApiKey[] {
  if (filter === "") return keys;
  const part = filter.toLowerCase();
  return keys.filter(({ id, key, device_id, name }) =>
    [name, device_id, id, key].some((text) => text?.toLowerCase().includes(part)),
  );
}
