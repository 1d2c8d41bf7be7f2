import { type Customer, customerMetaBytes } from "@devmesh/contracts/model/customer";
import { isDeeperThan, isJsonObject, type JsonObject, maxJsonDepth } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";

/** One thing wrong in a posted customer, with a JSON pointer to it. */
interface CustomerViolation {
  readonly pointer: string;
  readonly detail: string;
}

/** The new `meta` as compact JSON, or why the posted object is refused. */
export type CustomerUpdate =
  | { readonly meta: string }
  | { readonly violations: readonly CustomerViolation[] }
  | { readonly tooLarge: true };

/**
 * Reads a posted customer (api.md, Details decided, Customers): the whole object may come back, `meta` replaces the
 * old one, every other member must be what it was.
 */
export function readCustomerUpdate(customer: Customer, body: JsonObject): CustomerUpdate {
  const known = new Map<string, unknown>(Object.entries(customer));
  const violations = Object.entries(body).flatMap(([name, value]) => {
    if (name === "meta") return [];
    if (!known.has(name)) return [{ pointer: pointerToken(name), detail: "is not known here" }];
    return known.get(name) === value ? [] : [{ pointer: pointerToken(name), detail: "cannot be changed" }];
  });
  const meta = Object.hasOwn(body, "meta") ? body.meta : undefined;
  if (!isJsonObject(meta)) violations.push({ pointer: "/meta", detail: "must be a JSON object" });
  else if (isDeeperThan(meta, maxJsonDepth)) {
    violations.push({ pointer: "/meta", detail: `is nested deeper than ${maxJsonDepth} levels` });
  }
  if (!isJsonObject(meta) || violations.length > 0) return { violations };
  const text = JSON.stringify(meta);
  return Buffer.byteLength(text) > customerMetaBytes ? { tooLarge: true } : { meta: text };
}
