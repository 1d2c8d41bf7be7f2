import { z } from "zod";
import { keys } from "../keys.ts";
import { EmailAddress } from "../model/email-address.ts";
import { defineRoutes } from "./route.ts";

const tag = "Customer registration";

const Invitation = z.object({ status: z.literal("invited").describe("Always the same.") }).meta({
  id: "Invitation",
  description: "The answer to each well-formed address.",
  example: { status: "invited" },
});

const Page = z.string().meta({
  description: "A page for people.",
  example: "<!doctype html><title>Address confirmed</title>",
});

/** How one becomes a customer, without a key (api.md, Customers). */
export const registration = defineRoutes({
  registerCustomer: {
    method: "get",
    path: "/newcustomer",
    tag,
    summary: "Invite a customer by e-mail",
    description:
      "Answers the same for each well-formed address, known or not. The mail holds a confirmation link and the customer's access token. A browser gets a page.",
    auth: null,
    query: z.object({ email: EmailAddress }),
    withoutBlanks: ["email"],
    answers: {
      202: {
        description: "An invitation is on its way, if the address may get one.",
        json: Invitation,
        other: { "text/html": Page },
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
    // Mail programs add parameters to a link.
    query: z.looseObject({
      token: z.string().min(1).max(512).describe("The secret of the link, no API key."),
    }),
    answers: { 200: { description: "A page that confirms it.", other: { "text/html": Page } } },
    calls: [{ contract: keys, methods: ["confirmCustomer"] }],
  },
});
