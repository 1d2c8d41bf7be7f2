import { type Customer, customerMetaBytes } from "@devmesh/contracts/model/customer";
import { isDeeperThan, isJsonObject, type JsonObject, maxJsonDepth } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import { type Violation, ViolationList } from "@devmesh/contracts/model/violation";

/** The new `meta` as compact JSON, or why the body is rejected. */
export type CustomerUpdate =
  | { readonly meta: string }
  | { readonly violations: readonly Violation[] }
  | { readonly tooLarge: true };

/** Checks a posted customer (api.md, Customers): `meta` replaces the old one, other members must be unchanged. */
export function readCustomerUpdate(customer: Customer, body: JsonObject): CustomerUpdate {
  const known = new Map<string, unknown>(Object.entries(customer));
  const violations = new ViolationList();
  const meta = Object.hasOwn(body, "meta") ? body.meta : undefined;
  if (!isJsonObject(meta)) violations.add("/meta", "must be a JSON object");
  else if (isDeeperThan(meta, maxJsonDepth)) {
    violations.add("/meta", `is nested deeper than ${maxJsonDepth} levels`);
  }
  for (const [name, value] of Object.entries(body)) {
    if (violations.full) break;
    if (name === "meta" || (known.has(name) && known.get(name) === value)) continue;
    violations.add(pointerToken(name), known.has(name) ? "cannot be changed" : "is not known here");
  }
  if (!isJsonObject(meta) || violations.any) return { violations: violations.list };
  const text = JSON.stringify(meta);
  return Buffer.byteLength(text) > customerMetaBytes ? { tooLarge: true } : { meta: text };
}
