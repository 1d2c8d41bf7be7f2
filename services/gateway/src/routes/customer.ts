import type { keys } from "@devmesh/contracts/keys";
import type { customerAccess } from "@devmesh/contracts/rest/customer";
import type { Client } from "@devmesh/service-kit/implementation";
import type { Handlers } from "../http/handlers.ts";
import { json } from "../http/reply.ts";

/** The customer's own object (api.md, Customers); whose it is follows from the key. */
export function customerHandlers(clients: {
  readonly keys: Client<typeof keys, "readCustomer" | "updateCustomer">;
}): Handlers<keyof typeof customerAccess> {
  return {
    readCustomer: async ({ principal, call }) =>
      json(await clients.keys.bytes.readCustomer({ customer_id: principal.customer_id }, call)),

    updateCustomer: async ({ principal, body, call }) =>
      json(await clients.keys.bytes.updateCustomer({ customer_id: principal.customer_id, body }, call)),
  };
}
