import type { customerAccess } from "@devmesh/contracts/rest/customer";
import type { registration } from "@devmesh/contracts/rest/registration";
import { json, page } from "../http/exchange.ts";
import { confirmationPage, invitationPage } from "./confirmation-page.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";

/** Invitation, confirmation and the customer's own object (api.md, Customers). */
export function customerHandlers({
  keys,
}: GatewayClients): Handlers<keyof typeof customerAccess | keyof typeof registration> {
  return {
    async registerCustomer({ query, address, call, preferred }) {
      await keys.invite({ email: query.email, network: address }, call);
      return preferred(["application/json", "text/html"]) === "text/html"
        ? page(invitationPage, 202)
        : json('{"status":"invited"}', { status: 202 });
    },

    async confirmCustomer({ query, call }) {
      const { email } = await keys.confirmCustomer({ confirmation: query.token }, call);
      return page(confirmationPage(email));
    },

    readCustomer: async ({ principal, call }) =>
      json(await keys.bytes.readCustomer({ customer_id: principal.customer_id }, call)),

    updateCustomer: async ({ principal, body, call }) =>
      json(await keys.bytes.updateCustomer({ customer_id: principal.customer_id, body }, call)),
  };
}
