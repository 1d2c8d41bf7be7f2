import { z } from "zod";
import { JsonObject } from "./json.ts";
import { Timestamp } from "./time.ts";

/** Bytes of compact JSON of a customer's `meta`. */
export const customerMetaBytes = 16_384;

/** A customer as its own key sees it. */
export const Customer = z
  .object({
    id: z.string(),
    email: z.string(),
    token: z.string(),
    meta: JsonObject,
    created_at: Timestamp,
    updated_at: Timestamp,
    confirmed_at: Timestamp.nullable(),
  })
  .meta({ id: "Customer" });
export type Customer = z.infer<typeof Customer>;

/** A customer as a master key lists it: without the token. */
export const ListedCustomer = Customer.omit({ token: true }).meta({ id: "ListedCustomer" });
export type ListedCustomer = z.infer<typeof ListedCustomer>;
