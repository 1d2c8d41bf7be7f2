import { z } from "zod";
import { keys } from "../keys.ts";
import { EmailAddress } from "../model/email-address.ts";
import { defineRoutes } from "./route.ts";

const tag = "Customer registration";

/** How one becomes a customer, without a key (api.md, Customers). */
export const registration = defineRoutes({
  registerCustomer: {
    method: "get",
    path: "/newcustomer",
    tag,
    summary: "Invite a customer by e-mail",
    description:
      "Always answers the same for a well-formed address, known or not. The mail holds a confirmation link and the customer's access token.",
    auth: null,
    query: z.object({ email: EmailAddress }),
    answers: {
      202: {
        description: "An invitation is on its way, if the address may get one.",
        json: z.object({ status: z.literal("invited") }),
      },
    },
    calls: [{ contract: keys, methods: ["invite"] }],
  },
  confirmCustomer: {
    method: "get",
    path: "/confirm",
    tag,
    summary: "Confirm an e-mail address",
    description: "The link of the invitation. Shows a page; following it twice is harmless.",
    auth: null,
    // Mail programs add parameters of their own to a link.
    query: z.looseObject({ token: z.string().min(1).max(512) }),
    answers: { 200: { description: "A page that says so.", other: { "text/html": z.string() } } },
    calls: [{ contract: keys, methods: ["confirmCustomer"] }],
  },
});
