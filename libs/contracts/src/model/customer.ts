import { z } from "zod";
import { JsonObject } from "./json.ts";
import { Timestamp } from "./time.ts";

/** Bytes of compact JSON of a customer's `meta`. */
export const customerMetaBytes = 16_384;

const listed = {
  id: z.string().describe("Id of the customer."),
  email: z.string().describe("E-mail address, in lower case and with its domain in ASCII."),
  meta: JsonObject.describe("Metadata of the vendor, at most 16 KB of compact JSON."),
  created_at: Timestamp.describe("When the customer was invited first."),
  updated_at: Timestamp.describe("When `meta` was last written."),
  confirmed_at: Timestamp.nullable().describe("When the address was confirmed; null before."),
};

const listedExample = {
  id: "0198c2a0b7f1",
  email: "ann@example.com",
  meta: { devices: { "pump-1": {} } },
  created_at: "2026-01-31T12:00:00.000Z",
  updated_at: "2026-02-01T08:30:00.000Z",
  confirmed_at: "2026-01-31T12:05:00.000Z",
};

/** A customer as its own key sees it. */
export const Customer = z
  .object({ ...listed, token: z.string().describe("The access token: the customer's API key.") })
  .meta({
    id: "Customer",
    description: "A customer as its own key sees it.",
    example: { ...listedExample, token: "ck_4fT9wXq2LmZ8sVb1NcR6yKp3HdGj7uAe" },
  });
export type Customer = z.infer<typeof Customer>;

/** A customer as a master key lists it: without the token. */
export const ListedCustomer = z.object(listed).meta({
  id: "ListedCustomer",
  description: "A customer as a master key lists it, without the token.",
  example: listedExample,
});
export type ListedCustomer = z.infer<typeof ListedCustomer>;
