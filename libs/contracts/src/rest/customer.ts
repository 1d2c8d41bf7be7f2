import { keys } from "../keys.ts";
import { Customer } from "../model/customer.ts";
import { JsonObject } from "../model/json.ts";
import { defineRoutes, get, post } from "./route.ts";

const tag = "Customer access";
const path = "/customer";
const aliases = ["/customer"];

/** What a customer does with the access token from the mail (api.md, Customers). */
export const customerAccess = defineRoutes({
  readCustomer: {
    ...get(path),
    aliases,
    tag,
    summary: "Read the customer object",
    auth: ["customer"],
    answers: { 200: { description: "The customer.", json: Customer } },
    calls: [{ contract: keys, methods: ["readCustomer"] }],
  },
  updateCustomer: {
    ...post(path, "customer"),
    aliases,
    tag,
    summary: "Replace the customer's metadata",
    description:
      "`meta` replaces the old one whole, at most 16 KB. Other members may be posted back unchanged; a changed one is refused.",
    auth: ["customer"],
    body: {
      schema: JsonObject.meta({
        id: "CustomerUpdate",
        type: "object",
        description: "The new metadata; other members may be posted back unchanged.",
        properties: {
          meta: {
            type: "object",
            additionalProperties: true,
            description: "Replaces the old one whole; at most 16 KB of compact JSON.",
          },
        },
        example: { meta: { devices: { "pump-1": {} } } },
      }),
      optional: false,
    },
    answers: { 200: { description: "The customer as it is now.", json: Customer } },
    calls: [{ contract: keys, methods: ["updateCustomer"] }],
  },
});
