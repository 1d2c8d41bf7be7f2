import type { keys } from "@devmesh/contracts/keys";
import type { registration } from "@devmesh/contracts/rest/registration";
import type { Client } from "@devmesh/service-kit/implementation";
import type { Handlers } from "../http/handlers.ts";
import { json, page } from "../http/reply.ts";
import { confirmationPage } from "./confirmation-page.ts";

/** Invitations and confirmations, by anybody (api.md, Customers). */
export function registrationHandlers(clients: {
  readonly keys: Client<typeof keys, "invite" | "confirmCustomer">;
}): Handlers<keyof typeof registration> {
  return {
    async registerCustomer({ query, address, call }) {
      await clients.keys.invite({ email: query.email, network: address }, call);
      return json('{"status":"invited"}', { status: 202 });
    },

    async confirmCustomer({ query, call }) {
      const { email } = await clients.keys.confirmCustomer({ confirmation: query.token }, call);
      return page(confirmationPage(email));
    },
  };
}
